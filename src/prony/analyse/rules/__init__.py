"""Validity rules: one module for each thing that can be wrong with a measurement."""
