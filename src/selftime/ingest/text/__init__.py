"""Reading a trace file as text: format detection, decompression, top-level keys, event chunks."""
