"""Results in, what is drawn of them out: distributions, timelines, starts."""
