"""Says how much time, memory and room a query may take, and holds a process to its memory."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_MAX_DEFAULT_MEMORY_BYTES: Final = 4 << 30
"""Largest default limit of a query's memory, in bytes."""
_DEFAULT_SHARE_OF_MACHINE: Final = 0.25
"""Share of the machine's memory that one query may take by default."""
_DEFAULT_SECONDS: Final = 30.0
"""Default limit of a query's time, in s."""


def _default_memory_bytes() -> int:
    """Returns the default limit of a query's memory: of a small machine, a quarter."""
    try:
        machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # no such function, or no such name there
        return _MAX_DEFAULT_MEMORY_BYTES
    return min(_MAX_DEFAULT_MEMORY_BYTES, int(machine_bytes * _DEFAULT_SHARE_OF_MACHINE))


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What a query may take; one that takes more is stopped, which a sentence says."""

    seconds: float = _DEFAULT_SECONDS
    """Time in s, with the time to read the trace."""
    memory_bytes: int = field(default_factory=_default_memory_bytes)
    """Memory in bytes beside that of the trace."""
    rows: int | None = None
    """Number of rows of the result that are handed over; None means all."""


def limit_memory_of_process(more_bytes: int) -> None:
    """Limits this process's address space to what it has now and `more_bytes` bytes.

    Linux holds a process to that; elsewhere only time limits a query.
    """
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - not on every system

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + more_bytes
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
