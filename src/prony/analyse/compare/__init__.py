"""Compare results: match jobs, test the differences and state the conclusions."""
