"""Keeps what a program computed in its first rounds, so that two runs of it can be compared."""
