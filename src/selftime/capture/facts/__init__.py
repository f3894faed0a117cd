"""Collects data on the program, the machine and torch's settings that a profiler trace lacks."""
