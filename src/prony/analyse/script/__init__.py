"""What analysis says of a job that executes a script."""
