"""Traces written anew: a part of one, or one without what is private.

    part        which events belong to some steps, or to a stretch of time
    lanes       where events lie that cross others of their thread, so that every viewer shows them
    threads     the threads that are added for them
    flows       arrows between events, of which both ends must be left
    clocks      what the times in a file are in the trace
    edits       an event's text with other values in it
    cutting     a file's text with only the events of a part
    hiding      a file's text without what is private
    snapshots   a memory snapshot without what is private

Each hands on text that it gets from `ingest`, part by part; `reports` writes it.
"""
