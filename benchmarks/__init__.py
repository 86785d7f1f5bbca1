"""Programs that print the figures of docs/performance.md, each beside its peer in the same run."""
