"""Writes what torch's profiler recorded as a trace file, corrected and with selftime's facts."""
