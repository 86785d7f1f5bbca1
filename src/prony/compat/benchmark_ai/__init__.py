"""Benchmark AI: its descriptors as recipes, and its library for scripts."""
