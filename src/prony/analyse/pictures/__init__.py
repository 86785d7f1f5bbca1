"""Prepare data for charts: distributions and timelines of runs."""
