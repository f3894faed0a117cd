"""Rewrites trace files: keeps only a part of a trace, or removes private data.

part         which events belong to some steps, or to a span of time
threads      extra threads for slices that cross others, so that every viewer shows them
event_times  the times in a file as times of the trace; events with changed values
cutting      a file's text with only the events of a part
hiding       a file's text without private data
snapshots    a memory snapshot without private data

Each passes on text that it gets from `ingest`, part by part; `reports` writes it.
"""
