"""The requests of a load in, one number a run, their estimates and the verdict out."""
