"""Analyses memory: its blocks, what allocated them, and its growth over steps."""
