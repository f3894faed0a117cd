"""Reading traces: the only package that opens them.

The modules, in the order in which a file passes through them:

load                                loads a path, folder or address
cache, table_file                   cached tables on disk, as memory-mapped files
paths                               the trace files of a path, folder, glob or address
text                                the text of a file: format, decompression, keys, chunks
    sniff, source, decompression    format detection; blocks of text; gzip and zstd members
    hashed_file, file_text, window  bytes hashed as they are read; text in a file; unread text
    document, top_level_keys        the whole file; its top-level keys
    no_events                       why a file has no events
    header                          devices, rank and time origin in the header
    parts, strings, trace_in_file   a file as text, for rewriting it; the slice of each event
workers, pipes                      processes that decode chunks; pipes to them
events                              events as columns
    decode, event, arguments        a chunk of text; typed events; their arguments
    columns, assemble, pairing      columns of a chunk; of the file; slices of begins and ends
    operator_columns                operators' shapes and overloads
damage                              faults and repairs of damaged files
times                               all times in integer nanoseconds on one clock
links                               order and nesting; launches, callers, forward; source lines
facts, tables                       selftime's own facts; the tables of the `Trace`
ranks                               the rank of each file of a folder
snapshots, perfetto                 allocator snapshots; Perfetto's format

Nothing is imported here: a reading process needs only the modules from bytes to columns.
"""
