"""Results that differ in load in, the knee, the limit of throughput and the highest load that holds the SLO out."""
