"""Reads the recorder's notes in a trace's metadata: settings, threads, CPU cores and their use."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from selftime.trace import Trace

MIN_USED_SHARE_OF_SATURATED_CORES: Final = 0.85
"""Share of CPU core time in use from which more workers would find no free core."""
MIN_CORE_DEMAND_OF_COMPUTING_WORKERS: Final = 0.5
"""Share of time in which workers run, or wait for a core, from which computation makes them
slow."""


def recorded_setting(trace: Trace, name: str) -> Any:
    """Returns a setting of the program or profiler by its name; None if it was not recorded."""
    return _fact_group(trace, "settings").get(name)


def environment_variable(trace: Trace, name: str) -> str | None:
    """Returns the recorded value of an environment variable; None if it was not recorded."""
    kept = _fact_group(trace, "settings").get("environment")
    value = kept.get(name) if isinstance(kept, dict) else None
    return value if isinstance(value, str) else None


def torch_version(trace: Trace) -> tuple[int, int] | None:
    """Returns PyTorch's major and minor version in the program; None if it was not recorded."""
    version = trace.facts.get("torch")
    major, _, rest = version.partition(".") if isinstance(version, str) else ("", "", "")
    minor = rest.partition(".")[0]
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        return None
    return int(major), int(minor)


def intra_op_thread_count(trace: Trace) -> int | None:
    """Returns the number of threads that split one CPU operator's work; None if not recorded."""
    threads = recorded_setting(trace, "threads")
    threads = trace.facts.get("threads") if threads is None else threads
    return threads if type(threads) is int and threads > 0 else None


def cores_used_by_workers(trace: Trace) -> float | None:
    """Returns the mean number of CPU cores that DataLoader workers used; None if not recorded."""
    usage = _fact_group(trace, "usage")
    workers, wall = usage.get("workers"), _non_negative_float_or_none(usage.get("wall_s"))
    spent = _non_negative_float_or_none(workers.get("cpu_s")) if isinstance(workers, dict) else None
    return spent / wall if spent is not None and wall else None


def local_rank_count(trace: Trace) -> int:
    """Returns the number of the job's processes on this machine; 1 if not recorded.

    A process that is pinned to some of the cores is taken to have them for itself.
    """
    told = environment_variable(trace, "LOCAL_WORLD_SIZE") or ""
    machine = _fact_group(trace, "cores")
    if not told.isdecimal() or machine.get("affinity") != machine.get("logical"):
        return 1
    return max(int(told), 1)


def _fact_group(trace: Trace, name: str) -> dict[str, Any]:
    """Returns the recorder's metadata under one key, such as `usage`; {} if not recorded."""
    part = trace.facts.get(name)
    return part if isinstance(part, dict) else {}


@dataclass(frozen=True, slots=True)
class WorkerCoreUse:
    """How much a DataLoader's worker processes used the CPU cores; None where not recorded."""

    worker_count: int
    """The number of worker processes."""
    core_demand_share: float | None
    """Mean share of time in which a worker ran or waited for a core; None if not recorded."""
    core_use_share: float | None
    """Share of all CPU core time that any process used; None if not recorded."""

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "WorkerCoreUse | None":
        """Returns the workers' CPU use from the recorder's metadata; None if not recorded."""
        usage = facts.get("usage")
        told = usage.get("workers") if isinstance(usage, Mapping) else None
        if not isinstance(usage, Mapping) or not isinstance(told, Mapping):
            return None
        wall, count = _non_negative_float_or_none(usage.get("wall_s")), told.get("count")
        if not isinstance(count, int) or count < 1 or not wall:
            return None
        spent, cores = _non_negative_float_or_none(told.get("cpu_s")), available_cores(facts)
        queued = _non_negative_float_or_none(told.get("queued_s"))
        return cls(
            count,
            _core_demand_share(spent, queued, wall * count, facts),
            _core_use_share(usage, spent, wall, cores),
        )

    @property
    def are_always_busy(self) -> bool:
        """Returns whether workers run or wait for a core for more than 85 % of their time.

        Then a longer queue gives no more batches.
        """
        return (
            self.core_demand_share is not None
            and self.core_demand_share > MIN_USED_SHARE_OF_SATURATED_CORES
        )

    @property
    def saturate_cores(self) -> bool:
        """Returns whether workers mostly compute and the cores have no time for more workers."""
        return (
            self.core_demand_share is not None
            and self.core_demand_share > MIN_CORE_DEMAND_OF_COMPUTING_WORKERS
            and self.core_use_share is not None
            and self.core_use_share > MIN_USED_SHARE_OF_SATURATED_CORES
        )


def _core_demand_share(
    cpu_s: float | None, queued_s: float | None, workers_wall_s: float, facts: Mapping[str, Any]
) -> float | None:
    """Returns the share of time in which DataLoader workers ran or were queued for a CPU core.

    Without the time in the queue, CPU time is divided by a fair share of the cores.
    """
    if cpu_s is None:
        return None
    if queued_s is not None:
        return min(1.0, (cpu_s + queued_s) / workers_wall_s)
    told, cores = facts.get("cores"), available_cores(facts)
    load = _non_negative_float_or_none(told.get("load")) if isinstance(told, Mapping) else None
    fair = min(1.0, cores / load) if cores and load else 1.0
    return min(1.0, cpu_s / (workers_wall_s * fair))


def _core_use_share(
    usage: Mapping[str, Any], workers_cpu_s: float | None, wall_s: float, cores: float | None
) -> float | None:
    """Returns the share of all CPU core time that any process used; None if not recorded."""
    shares = [_non_negative_float_or_none(usage.get("busy"))]
    own = _non_negative_float_or_none(usage.get("process_s"))
    if own is not None and workers_cpu_s is not None and cores:
        shares.append(min(1.0, (own + workers_cpu_s) / (wall_s * cores)))
    known = [share for share in shares if share is not None]
    return max(known) if known else None


def share_used_by_others(facts: Mapping[str, Any]) -> float | None:
    """Returns the share of CPU core time that other programs used; None if not recorded."""
    usage, cores = facts.get("usage"), available_cores(facts)
    if not isinstance(usage, Mapping) or cores is None:
        return None
    wall, busy = (
        _non_negative_float_or_none(usage.get("wall_s")),
        _non_negative_float_or_none(usage.get("busy")),
    )
    told = usage.get("workers")
    own = [_non_negative_float_or_none(usage.get("process_s"))]
    own.append(
        _non_negative_float_or_none(told.get("cpu_s")) if isinstance(told, Mapping) else None
    )
    spent = [time for time in own if time is not None]
    if not wall or busy is None or len(spent) < len(own):
        return None
    return max(0.0, busy - sum(spent) / (wall * cores))


def available_cores(facts: Mapping[str, Any]) -> float | None:
    """Returns the number of CPU cores that the program may use; None if not recorded."""
    told = facts.get("cores")
    cores = (
        _non_negative_float_or_none(told.get("effective")) if isinstance(told, Mapping) else None
    )
    return cores if cores is not None and cores >= 1 else None


def _non_negative_float_or_none(value: Any) -> float | None:
    """Returns a finite number of at least 0 as a float; None for any other value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value >= 0 else None
