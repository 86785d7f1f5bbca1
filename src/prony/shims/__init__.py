"""What a script may import without installing it: copies of these files are put before its own on PYTHONPATH."""
