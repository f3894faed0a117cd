"""Reads the user's source files to find the source lines that findings are about."""
