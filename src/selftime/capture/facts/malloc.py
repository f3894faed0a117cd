"""Reads how much memory is in use in the C library's arenas, where small blocks lie.

A block of 128 KiB or more, such as that of a large tensor, is mapped for itself and is not counted
(the allocator raises this limit, to at most 32 MiB, when the program releases such a block). The
profiler stores events in smaller blocks.
"""

import ctypes
import functools
import sys
from typing import Any, ClassVar, Final

_FIELDS: Final = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)
_TRIAL_BYTES: Final = 100_000


class _MallocInformation(ctypes.Structure):
    """What glibc's `mallinfo2` returns; see its manual page."""

    _fields_: ClassVar = [(name, ctypes.c_size_t) for name in _FIELDS]


def bytes_in_arenas() -> int | None:
    """Returns the bytes in use in small blocks; None if the C library does not tell.

    It takes some microseconds, and more where many blocks were released in disorder.
    """
    ask = _mallinfo2()
    return None if ask is None else int(ask().uordblks)


@functools.cache
def _mallinfo2() -> Any:
    """Returns the C library's function; None if it does not count what `malloc` gives out.

    Only glibc has it. A program may use another allocator, such as jemalloc, in its place.
    """
    if sys.platform == "win32":
        return None
    library = ctypes.CDLL(None)
    ask = getattr(library, "mallinfo2", None)
    if ask is None:
        return None
    ask.restype = _MallocInformation
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    library.free.argtypes = (ctypes.c_void_p,)
    before = ask().uordblks
    block = library.malloc(_TRIAL_BYTES)
    counted = ask().uordblks - before
    library.free(block)
    return ask if counted >= _TRIAL_BYTES else None
