"""The end of a process that was forked from one in which torch's profiler has run.

The profiler's threads do not come along with a fork, and its destructors, which run after Python
has ended, wait for them: the child would hang or abort where it ought to leave its status.
"""

import ctypes
from contextlib import suppress


def end_without_destructors() -> None:
    """Let this process end right after Python's own end, with its status and nothing unwritten.

    What is registered last runs first: the streams of C are flushed, then the process is left.
    Where the C library has no `on_exit`, as outside Linux, the process ends as it would.
    """
    library = ctypes.CDLL(None)
    with suppress(AttributeError):
        library.on_exit(library._exit, None)  # noqa: SLF001 - a name of C
        library.__cxa_atexit(library.fflush, None, None)  # noqa: SLF001 - likewise
