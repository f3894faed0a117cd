"""Measures CPU time of this process and its workers, and how busy the CPU cores are.

Worker processes are those that this process started with `multiprocessing`, as a DataLoader does.
"""

import multiprocessing
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

MIN_CLOCK_TICKS: Final = 20
"""Smallest number of clock ticks, summed over all cores, from which CPU usage is computed."""

_STEAL_TIME_FIELD_INDEX: Final = 7
"""Index of the time stolen by the hypervisor in a `cpuN` line of /proc/stat."""
_IDLE_TIME_FIELD_INDICES: Final = (3, 4)
"""Indices of the idle time and the I/O wait time in a `cpuN` line of /proc/stat."""
_NUMBER_OF_FIELDS_THAT_ADD_UP_TO_ALL_TIME: Final = 8
"""Number of leading fields in a `cpuN` line of /proc/stat whose sum is the core's total time."""
_STAT_FIELDS_OF_PROCESS_CPU_TIME: Final = slice(11, 13)
"""Indices of user and system time among the fields after the process name in /proc/PID/stat."""


@dataclass(frozen=True, slots=True)
class CpuCounters:
    """CPU times since start at one instant: of processes in seconds, of cores in clock ticks."""

    wall: float
    process: float
    """CPU time of this process, in seconds."""
    workers: dict[int, float | None]
    """Maps the id of each worker process to its CPU time in seconds; None if unknown."""
    seconds_waiting_for_core: dict[int, float | None]
    """Maps the id of each worker process to the seconds in which it was ready to run but had no
    core; None if unknown."""
    cores: dict[int, tuple[int, ...]]
    """Maps each core that this process may use to its clock ticks by kind of time; empty if
    unknown."""
    queued: float | None = None
    """Seconds in which this process's main thread was ready to run but had no core; None if
    unknown."""


class CpuUsage:
    """Measures CPU usage between `read_at_start` and `read_at_end`, during one recording."""

    def __init__(self) -> None:
        self._at_start: CpuCounters | None = None
        self._at_end: CpuCounters | None = None

    def read_at_start(self) -> None:
        self._at_start, self._at_end = read_cpu_counters(), None

    def read_at_end(self) -> None:
        if self._at_end is None:
            self._at_end = read_cpu_counters()

    def usage_facts(self) -> dict[str, Any] | None:
        """Returns the CPU usage between the two readings; None before `read_at_end`."""
        if self._at_start is None or self._at_end is None:
            return None
        return cpu_usage_between(self._at_start, self._at_end)


def read_cpu_counters(root: Path = Path("/")) -> CpuCounters:
    """Returns the current CPU counters, from the folder /proc within `root`."""
    workers = _worker_process_ids()
    return CpuCounters(
        time.perf_counter(),
        time.process_time(),
        {pid: _process_cpu_seconds(root, pid) for pid in workers},
        {pid: _process_seconds_waiting_for_core(root, pid) for pid in workers},
        _cpu_time_ticks_by_core(root),
        _process_seconds_waiting_for_core(root, os.getpid()),
    )


def cpu_usage_between(before: CpuCounters, after: CpuCounters) -> dict[str, Any]:
    """Returns CPU times (s) and fractions of time in use (0 to 1) between two readings of counters.

    `workers` counts the worker processes that ran throughout and adds up their times.
    """
    busy, steal = _busy_and_stolen_shares(before, after)
    queued = None if None in (before.queued, after.queued) else after.queued - before.queued  # type: ignore[operator]  # neither is None
    return {
        "wall_s": after.wall - before.wall,
        "process_s": after.process - before.process,
        "queued_s": queued,
        "workers": {
            "count": len(before.workers.keys() & after.workers.keys()),
            "cpu_s": _total_cpu_seconds_between(before.workers, after.workers),
            "queued_s": _total_cpu_seconds_between(
                before.seconds_waiting_for_core, after.seconds_waiting_for_core
            ),
        },
        "busy": busy,
        "steal": steal,
    }


def _total_cpu_seconds_between(
    before: dict[int, float | None], after: dict[int, float | None]
) -> float | None:
    """Returns the CPU seconds of all processes together between two readings; None if unknown."""
    pids = sorted(before.keys() & after.keys())
    pairs = [(before[pid], after[pid]) for pid in pids]
    known = [late - early for early, late in pairs if early is not None and late is not None]
    return sum(known) if len(known) == len(pairs) else None


def _busy_and_stolen_shares(
    before: CpuCounters, after: CpuCounters
) -> tuple[float | None, float | None]:
    """Returns fractions (0 to 1) of the cores' time: (in use, stolen by the hypervisor)."""
    cores = before.cores.keys() & after.cores.keys()
    elapsed = [
        [late - early for early, late in zip(before.cores[c], after.cores[c], strict=True)]
        for c in cores
    ]
    total = sum(sum(ticks) for ticks in elapsed)
    if total < MIN_CLOCK_TICKS:
        return None, None
    idle = sum(ticks[field] for ticks in elapsed for field in _IDLE_TIME_FIELD_INDICES)
    return 1.0 - idle / total, sum(ticks[_STEAL_TIME_FIELD_INDEX] for ticks in elapsed) / total


def _worker_process_ids() -> list[int]:
    """Returns the process ids of running worker processes, and reaps those that have ended."""
    return [child.pid for child in multiprocessing.active_children() if child.pid is not None]


def _process_cpu_seconds(root: Path, pid: int) -> float | None:
    """Returns the CPU time of a process in seconds; None if unknown."""
    try:
        text = (root / f"proc/{pid}/stat").read_text()
        # The name may contain spaces and parentheses; it ends at the last ")".
        ticks = sum(
            int(field)
            for field in text.rpartition(")")[2].split()[_STAT_FIELDS_OF_PROCESS_CPU_TIME]
        )
        return ticks / os.sysconf("SC_CLK_TCK")
    except (AttributeError, OSError, ValueError):  # another system, or the worker has ended
        return None


def _process_seconds_waiting_for_core(root: Path, pid: int) -> float | None:
    """Returns how long a process's main thread was ready to run but had no core, in seconds.

    None if unknown. Systems that do not count this report that the process never ran.
    """
    try:
        ran, queued, _ = map(int, (root / f"proc/{pid}/schedstat").read_text().split())
    except (OSError, ValueError):
        return None
    return queued / 1e9 if ran else None


def _cpu_time_ticks_by_core(root: Path) -> dict[int, tuple[int, ...]]:
    if not hasattr(os, "sched_getaffinity"):
        return {}
    allowed = os.sched_getaffinity(0)
    try:
        lines = (root / "proc/stat").read_text().splitlines()
        rows = [line.split() for line in lines if line.startswith("cpu") and line[3:4].isdecimal()]
        ticks = {
            int(name[3:]): tuple(map(int, fields[:_NUMBER_OF_FIELDS_THAT_ADD_UP_TO_ALL_TIME]))
            for name, *fields in rows
        }
    except (OSError, ValueError):
        return {}
    return {
        core: counts
        for core, counts in ticks.items()
        if core in allowed and len(counts) == _NUMBER_OF_FIELDS_THAT_ADD_UP_TO_ALL_TIME
    }
