"""Reading traces: the only package that opens them.

A file is told by its content, decompressed and decoded in chunks side by side, put in order,
linked, and kept as tables on disk.
"""

from selftime.ingest.load import load

__all__ = ["load"]
