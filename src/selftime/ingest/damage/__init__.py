"""Damaged files: detecting faults, repairing what is unambiguous, and counting the rest."""
