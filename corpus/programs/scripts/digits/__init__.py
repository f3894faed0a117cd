"""Recognise digits of a display."""
