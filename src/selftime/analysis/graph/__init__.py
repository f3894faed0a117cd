"""The dependency graph of one trace, and its critical paths."""
