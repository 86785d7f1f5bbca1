"""Agent: a process on a device that leases jobs from a server, runs them and uploads the results."""
