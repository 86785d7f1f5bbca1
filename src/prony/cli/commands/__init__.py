"""One module a command: parse, call one use case, render."""
