"""Real servers for tests and benchmarks: started where their binaries are found, ended with whoever asked for them."""
