"""AI Factory: its recipes, its folders of results in and out, and its fixed limits for comparisons."""
