"""Builds a trace's tables from the profiler's events in memory, without writing a trace file."""
