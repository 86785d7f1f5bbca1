"""A kind of workload from outside: how fast this machine's SHA-256 is."""
