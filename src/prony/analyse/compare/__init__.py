"""Results in, findings on how they differ out."""
