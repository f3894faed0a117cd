"""Detects the faults of damaged trace files, repairs unambiguous ones, and counts the rest."""
