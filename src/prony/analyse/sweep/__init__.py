"""Sweeps over load: find the knee, the throughput limit and the highest load within the SLO."""
