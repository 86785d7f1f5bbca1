"""History: detect, confirm and describe changes in one benchmark's results over time."""
