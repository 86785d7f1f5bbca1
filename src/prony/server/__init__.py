"""Requests in, answers out: the HTTP face of a fleet. Each route parses, calls one use case and renders."""
