"""Compares the ranks of a job: aligns their clocks, and matches their common collectives."""
