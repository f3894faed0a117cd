"""Runs an unmodified program and records its processes."""
