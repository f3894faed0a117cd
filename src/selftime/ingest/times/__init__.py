"""Conversion of all times of a file to integer nanoseconds on one clock."""
