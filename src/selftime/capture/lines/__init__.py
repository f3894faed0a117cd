"""Finds the source line of the user's code that called each recorded operator."""
