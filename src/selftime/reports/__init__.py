"""Writes tables, findings and other results as text, JSON, HTML and further file formats."""
