"""The text of a file: what it is, its bytes, its keys, and its events in chunks."""
