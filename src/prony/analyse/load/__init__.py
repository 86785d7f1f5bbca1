"""Analyse a load's requests: metrics per run, estimates and the verdict."""
