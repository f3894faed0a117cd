"""Keeps the wall-time ledger: where a program's time goes from its first instruction to its end.

It is kept beside the recording of a few steps, and goes on when that is done. `ledger.py` takes
what the program's thread does (steps, waits for data, garbage collections, compilations),
`watcher.py` looks at the Python stack while no step is running or a step takes much longer than
others, `stacks.py` says what such a stack is busy with, and `file.py` appends it to a file once a
second. What the parts of the run are is decided where the file is read, not here.
"""
