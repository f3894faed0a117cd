"""Converts a trace file's times to integer ns, and removes backward jumps of the clock."""
