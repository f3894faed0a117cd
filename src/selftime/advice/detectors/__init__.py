"""Finds evidence of lost time in traces, such as waits for the device; advice rules share it."""
