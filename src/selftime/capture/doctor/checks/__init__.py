"""The checks, one subject a file: each turns what was seen into findings."""
