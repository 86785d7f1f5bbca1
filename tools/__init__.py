"""Programs for those who work on Prony: measure the house, rename and move what is in it."""
