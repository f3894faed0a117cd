"""Reading traces: the only package that opens them.

In the order of the way of a file:

    load                                a path, a folder, an address; the cache before all else
    cache                               tables kept on disk
    glance, places                      whether a file looks like a trace; the files of a path
    sniff, source, window               what a file is; its bytes, decompressed; a window on them
    hashed, stored                      bytes hashed where they are read; parts of a file on disk
    members, zstd_blocks                compressed data, member after member; how much at once
    document, keys, workers, pipes      the top-level keys; events in chunks, decoded side by side
    decode, events, doubtful            a chunk: as typed events, those of two meanings
    loosen, recover, mend               with odd values, damaged
    mixed, emptiness                    what several ranks wrote at once; why there is nothing
    columns, times, counters, assemble  events to columns, of a chunk and of the file
    arrange, link, autograd, lines      order and nesting; launches and frames; backward; source
    pickles, allocator, snapshot, whole snapshots of CUDA's allocator, read as plain values only
    doubles, ranks                      what the files of a folder are in their job
    homes                               threads that a cut trace has only to be seen
    parts, strings, placed              a file as text, for who writes it anew; slices found in it
    header, facts, faults, reckoning, tables    devices; what a recording knows; faults; the `Trace`

Nothing is imported here: a reading process needs the way from bytes to columns, not the tables.
"""
