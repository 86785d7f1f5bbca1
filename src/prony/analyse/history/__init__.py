"""The results of one benchmark over time in, what changed among them out."""
