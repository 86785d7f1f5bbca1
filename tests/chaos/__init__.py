"""A fleet of real processes, and what can go wrong around it, by a seed."""
