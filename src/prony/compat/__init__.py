"""Formats and interfaces of other programs, a folder each: found by entry points, and named by nothing outside."""
