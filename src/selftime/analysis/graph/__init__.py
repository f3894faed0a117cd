"""The dependency graph of one trace, and the critical paths that are read from it."""
