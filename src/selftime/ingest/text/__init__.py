"""Reads the text of trace files: detects formats, decompresses, splits events into chunks."""
