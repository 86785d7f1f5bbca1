"""Evidence in, reasons out: one module for each thing that can be wrong with a number."""
