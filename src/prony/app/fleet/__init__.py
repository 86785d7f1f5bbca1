"""The use cases of a fleet. Nothing is imported here: the processes of a server's pools need little of it."""
