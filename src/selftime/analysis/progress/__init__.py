"""Lays the progress of the ranks of a running job side by side."""
