"""Runs torch's profiler on a block of a program: its options, its session, and its pitfalls."""
