"""Idle time of devices: gaps in their work, what caused the gaps, and waits of the host."""
