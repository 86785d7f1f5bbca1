"""HTTP server of a fleet. Each route parses, calls one use case and renders."""
