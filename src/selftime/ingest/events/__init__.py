"""Parses the events of a trace file into typed columns, chunk by chunk, and merges the chunks."""
