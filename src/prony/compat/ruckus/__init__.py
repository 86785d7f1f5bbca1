"""RUCKUS: its experiments as recipes, its results as files."""
