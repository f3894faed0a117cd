"""Says how much time, memory and room a query may take, and holds a process to its memory."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Final

from selftime.units import bytes_text

_MAX_DEFAULT_MEMORY_BYTES: Final = 4 << 30
"""Largest default limit of a query's memory, in bytes."""
_DEFAULT_SHARE_OF_MACHINE: Final = 0.25
"""Share of the machine's memory that one query may take by default."""
_DEFAULT_SECONDS: Final = 30.0
"""Default limit of a query's time, in s."""
_SECONDS_BETWEEN_LOOKS_FOR_PARENT: Final = 0.5


def _default_memory_bytes() -> int:
    """Returns the default limit of a query's memory: of a small machine, a quarter."""
    try:
        machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # no such function, or no such name there
        return _MAX_DEFAULT_MEMORY_BYTES
    return min(_MAX_DEFAULT_MEMORY_BYTES, int(machine_bytes * _DEFAULT_SHARE_OF_MACHINE))


def _default_threads() -> int:
    """Returns the default number of threads of a query: half of the cores, at least one."""
    return max(1, (os.cpu_count() or 1) // 2)


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What a query may take; one that takes more is stopped, which a sentence says."""

    seconds: float = _DEFAULT_SECONDS
    """Time in s, once the trace is read."""
    memory_bytes: int = field(default_factory=_default_memory_bytes)
    """Memory in bytes beside that of the trace."""
    rows: int | None = None
    """Number of rows of the result that are handed over; None means all."""
    threads: int = field(default_factory=_default_threads)
    """Number of threads that compute."""

    @property
    def time_sentence(self) -> str:
        """What is said of a query that takes more time."""
        return (
            f"the query was stopped after {self.seconds:g} s; ask for less, or allow it more time "
            "with `--query-seconds`"
        )

    @property
    def memory_sentence(self) -> str:
        """What is said of a query that takes more memory."""
        return (
            "the query was stopped, as it needs more memory than "
            f"{bytes_text(self.memory_bytes)}; ask for less, or allow it more memory with "
            "`--query-memory`"
        )


def end_process_with_parent() -> None:
    """Ends this process soon after the one that started it, however that ends."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            sleep(_SECONDS_BETWEEN_LOOKS_FOR_PARENT)
        os._exit(1)

    Thread(target=watch, daemon=True, name="selftime-parent").start()


def limit_memory_of_process(more_bytes: int) -> None:
    """Limits this process's address space to what it has now and `more_bytes` bytes.

    Linux holds a process to that; elsewhere only time limits a query.
    """
    if sys.platform != "linux":
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _set_limit_of_address_space(pages * os.sysconf("SC_PAGE_SIZE") + more_bytes)


def lift_memory_limit_of_process() -> None:
    """Lets this process's address space grow again, as far as the system lets it."""
    if sys.platform == "linux":
        _set_limit_of_address_space(None)


def _set_limit_of_address_space(limit: int | None) -> None:
    """Sets the limit of this process's address space in bytes; None for the highest there is."""
    import resource  # noqa: PLC0415 - not on every system

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if limit is None or (most != resource.RLIM_INFINITY and limit > most):
        limit = most
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
