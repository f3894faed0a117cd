"""How much of the machine a recording used: of its cores, by whom.

Worker processes are those that this process started by `multiprocessing`, as a DataLoader does.
"""

import multiprocessing
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LEAST_TICKS: Final = 20
"""The system counts the time of its cores in ticks: of fewer no share is told."""

_STEAL: Final = 7
_IDLE: Final = (3, 4)
"""Fields of a core's line: idle, and idle while a disk works."""
_TOLD: Final = 8
"""Fields that add up to all time; those of guests are in the first."""
_TIMES: Final = slice(11, 13)
"""Fields of a process after its name and state: user and system time."""


@dataclass(frozen=True, slots=True)
class Instant:
    """What the system had counted at one instant; times in seconds, ticks of cores."""

    wall: float
    process: float
    workers: dict[int, float | None]
    """CPU time of each worker process, by its number."""
    queued: dict[int, float | None]
    """How long each was ready to run and had no core."""
    cores: dict[int, tuple[int, ...]]
    """Ticks of each core that this process may use; empty if the system does not tell."""


class Usage:
    """What a recording used, from its begin to its end."""

    def __init__(self) -> None:
        self._begun: Instant | None = None
        self._ended: Instant | None = None

    def begin(self) -> None:
        self._begun, self._ended = now(), None

    def end(self) -> None:
        if self._ended is None:
            self._ended = now()

    def facts(self) -> dict[str, Any] | None:
        """What was used; None until it has begun and ended."""
        if self._begun is None or self._ended is None:
            return None
        return used(self._begun, self._ended)


def now(root: Path = Path("/")) -> Instant:
    """What the system has counted until now."""
    workers = _children()
    return Instant(
        time.perf_counter(),
        time.process_time(),
        {pid: _cpu_time(root, pid) for pid in workers},
        {pid: _queued(root, pid) for pid in workers},
        _cores(root),
    )


def used(before: Instant, after: Instant) -> dict[str, Any]:
    """What was used between two instants; None for what the system does not tell.

    `workers` are those that lived throughout, with the times of all of them.
    """
    busy, steal = _shares(before, after)
    return {
        "wall_s": after.wall - before.wall,
        "process_s": after.process - before.process,
        "workers": {
            "count": len(before.workers.keys() & after.workers.keys()),
            "cpu_s": _passed(before.workers, after.workers),
            "queued_s": _passed(before.queued, after.queued),
        },
        "busy": busy,
        "steal": steal,
    }


def _passed(before: dict[int, float | None], after: dict[int, float | None]) -> float | None:
    """The time of all processes between two instants; None if that of one is not told."""
    lasting = sorted(before.keys() & after.keys())
    pairs = [(before[pid], after[pid]) for pid in lasting]
    known = [late - early for early, late in pairs if early is not None and late is not None]
    return sum(known) if len(known) == len(pairs) else None


def _shares(before: Instant, after: Instant) -> tuple[float | None, float | None]:
    """Of the time of the cores: not idle, and taken by the machine around this one."""
    cores = before.cores.keys() & after.cores.keys()
    passed = [
        [late - early for early, late in zip(before.cores[c], after.cores[c], strict=True)]
        for c in cores
    ]
    whole = sum(sum(ticks) for ticks in passed)
    if whole < LEAST_TICKS:
        return None, None
    idle = sum(ticks[at] for ticks in passed for at in _IDLE)
    return 1.0 - idle / whole, sum(ticks[_STEAL] for ticks in passed) / whole


def _children() -> list[int]:
    """Of running worker processes. Reading them also collects those that have ended."""
    return [child.pid for child in multiprocessing.active_children() if child.pid is not None]


def _cpu_time(root: Path, pid: int) -> float | None:
    try:
        text = (root / f"proc/{pid}/stat").read_text()
        # The name may hold blanks and brackets; it ends with the last of them.
        ticks = sum(int(field) for field in text.rpartition(")")[2].split()[_TIMES])
        return ticks / os.sysconf("SC_CLK_TCK")
    except (AttributeError, OSError, ValueError):  # another system, or the worker has ended
        return None


def _queued(root: Path, pid: int) -> float | None:
    """Systems that do not count this tell a process that it never ran."""
    try:
        ran, queued, _ = map(int, (root / f"proc/{pid}/schedstat").read_text().split())
    except (OSError, ValueError):
        return None
    return queued / 1e9 if ran else None


def _cores(root: Path) -> dict[int, tuple[int, ...]]:
    if not hasattr(os, "sched_getaffinity"):
        return {}
    allowed = os.sched_getaffinity(0)
    try:
        lines = (root / "proc/stat").read_text().splitlines()
        told = [line.split() for line in lines if line.startswith("cpu") and line[3:4].isdecimal()]
        ticks = {int(name[3:]): tuple(map(int, fields[:_TOLD])) for name, *fields in told}
    except (OSError, ValueError):
        return {}
    return {core: found for core, found in ticks.items() if core in allowed and len(found) == _TOLD}
