"""Writes the tables of views as text for terminals, and as CSV, JSON and Parquet."""
