"""Divides the wall time of a run by what it was spent on, and finds the slow steps of the run."""
