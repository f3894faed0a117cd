"""Measures a program's step times without a profiler, by reading clocks at the ends of steps."""
