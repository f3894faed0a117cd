"""Reads trace files into tables.

The modules, in the order in which a file passes through them:

load                               loads a path, folder or address
trace_cache, table_file            cached tables on disk, as memory-mapped files
trace_paths                        the trace files of a path, folder, glob or address
text                               the text of a file: format, decompression, keys, chunks
    format_detection               the format, from the first bytes
    decompressed_text              blocks of text
    decompression                  gzip and zstd members
    hashed_file                    bytes hashed as they are read
    file_text_window, text_window  text in a file; unread text
    trace_parsing, top_level_keys  the whole file; its top-level keys
    no_events_reason               why a file has no events
    trace_header                   devices, rank and time origin in the header
    trace_text_stream              a file as text, for rewriting it
    json_strings, event_positions  the strings of the text; the slice of each event
decoding_workers, process_pipes    processes that decode chunks; pipes to them
events                             events as columns
    chunk_decoding                 a chunk of text
    event_types, arguments         typed events; their arguments
    columns, chunk_merging         columns of a chunk; of the file
    begin_end_pairing              slices of begins and ends
    operator_columns               operators' shapes and overloads
damage                             faults and repairs of damaged files
times                              all times in integer nanoseconds on one clock
links                              order and nesting; launches, callers, forward; source lines
recorded_facts, trace_tables       selftime's own facts; the tables of the `Trace`
table_of_arrays                    a declared table, made of arrays
job_ranks                          the rank of each file of a folder
trace_listing, job_grouping        what names and first bytes tell of files; which are one job
snapshots, perfetto                allocator snapshots; Perfetto's format

Nothing is imported here: a reading process needs only the modules from bytes to columns.
"""
