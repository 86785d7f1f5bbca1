"""Prony: one recipe in, numbers you can defend out."""

__version__ = "0.1.0"
