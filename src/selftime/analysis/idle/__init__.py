"""Idle time: gaps, what is to blame for each, and what the host waited for."""
