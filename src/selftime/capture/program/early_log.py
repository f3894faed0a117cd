"""Takes over what `startup/selftime_early_log.py` holds of this process before its first torch."""

import sys
from dataclasses import dataclass
from typing import Any

_MODULE = "selftime_early_log"


@dataclass(frozen=True, slots=True)
class EarlyPlace:
    """Time that a process spent at one place before selftime was loaded."""

    file: str | None
    line: int | None
    function: str | None
    imported: str | None
    """The module that was being imported; None if none was."""
    library: str | None
    """The outermost library file that the line called; None if none is known."""
    duration: int
    """Time in ns."""
    readings: int
    """Number of stack samples."""


@dataclass(frozen=True, slots=True)
class EarlyTimes:
    """What is known of a process before selftime was loaded."""

    began_ns: int
    """When Python was ready, in ns of `time.perf_counter_ns`."""
    ended_ns: int
    """When selftime began to load, on that clock."""
    places: tuple[EarlyPlace, ...]
    collected_ns: int
    """Time in ns of garbage collections."""


def stop_early_log() -> EarlyTimes | None:
    """Ends the log of this process's beginning; returns what it holds, None if there is none."""
    log: Any = getattr(sys.modules.get(_MODULE), "early_log", None)
    if log is None:
        return None
    log.stop()
    places = tuple(EarlyPlace(*place, *known) for place, known in log.places.items())
    collected = sum(stop - start for (start, _), (stop, _) in zip(log.starts, log.stops))  # noqa: B905 - one may be going on
    return EarlyTimes(log.began_ns, log.ended_ns, places, collected)
