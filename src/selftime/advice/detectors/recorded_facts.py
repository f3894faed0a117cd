"""What a recording tells of the machine's cores, beside the trace: who used them, how much."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from selftime.trace import Trace

SATURATED: Final = 0.85
"""Cores that are used so much have nothing left for more workers."""
COMPUTING: Final = 0.5
"""Workers that ask for a core so much of the time are slow because they compute."""


def setting(trace: Trace, name: str) -> Any:
    """One value of the facts' `settings`."""
    return _part(trace, "settings").get(name)


def environment(trace: Trace, name: str) -> str | None:
    """An environment variable that the recorder keeps."""
    kept = _part(trace, "settings").get("environment")
    value = kept.get(name) if isinstance(kept, dict) else None
    return value if isinstance(value, str) else None


def torch_version(trace: Trace) -> tuple[int, int] | None:
    """Major and minor version of the PyTorch that ran the program; None if it is not recorded."""
    told = trace.facts.get("torch")
    major, _, rest = told.partition(".") if isinstance(told, str) else ("", "", "")
    minor = rest.partition(".")[0]
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        return None
    return int(major), int(minor)


def threads(trace: Trace) -> int | None:
    """Threads that share an operator's work."""
    told = setting(trace, "threads")
    told = trace.facts.get("threads") if told is None else told
    return told if type(told) is int and told > 0 else None


def cores(trace: Trace) -> float | None:
    """Cores that the process can have."""
    told = _part(trace, "cores").get("effective")
    return float(told) if isinstance(told, int | float) and told > 0 else None


def others(trace: Trace) -> float | None:
    """Cores that other programs took while this was recorded, and machines around this one."""
    usage, machine = _part(trace, "usage"), _part(trace, "cores")
    workers = usage.get("workers")
    in_workers = workers.get("cpu_s") if isinstance(workers, dict) else 0.0
    told = [usage.get("busy"), machine.get("affinity"), usage.get("process_s"), in_workers]
    wall = usage.get("wall_s")
    known = [float(value) for value in told if isinstance(value, int | float)]
    if len(known) < len(told) or not isinstance(wall, int | float) or wall <= 0:
        return None
    busy, count, own, theirs = known
    return max(busy * count - (own + theirs) / wall, 0.0)


def local_ranks(trace: Trace) -> int:
    """Processes of the job that share these cores; 1 where nobody tells.

    A process that may run on a part of the cores only has them for itself, as launchers pin ranks.
    """
    told = environment(trace, "LOCAL_WORLD_SIZE") or ""
    machine = _part(trace, "cores")
    if not told.isdecimal() or machine.get("affinity") != machine.get("logical"):
        return 1
    return max(int(told), 1)


def _part(trace: Trace, name: str) -> dict[str, Any]:
    part = trace.facts.get(name)
    return part if isinstance(part, dict) else {}


@dataclass(frozen=True, slots=True)
class Workers:
    """What the recording knows of its worker processes; None for what it does not."""

    count: int
    demand: float | None
    """The share of the time in which a worker asked for a core, had it been the only one."""
    used: float | None
    """The share of the cores' time that was used, by whomever."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Workers | None":
        """What the facts `usage` and `cores` tell; None if they do not."""
        usage = facts.get("usage")
        told = usage.get("workers") if isinstance(usage, Mapping) else None
        if not isinstance(usage, Mapping) or not isinstance(told, Mapping):
            return None
        wall, count = _number(usage.get("wall_s")), told.get("count")
        if not isinstance(count, int) or count < 1 or not wall:
            return None
        spent, cores = _number(told.get("cpu_s")), cores_of(facts)
        queued = _number(told.get("queued_s"))
        return cls(
            count, _demand(spent, queued, wall * count, facts), _used(usage, spent, wall, cores)
        )

    @property
    def never_rest(self) -> bool:
        """Whether they compute all the time: no more batches come, whatever is kept ready."""
        return self.demand is not None and self.demand > SATURATED

    @property
    def saturate(self) -> bool:
        """Whether they compute, and no core is free for more of them."""
        return (
            self.demand is not None
            and self.demand > COMPUTING
            and self.used is not None
            and self.used > SATURATED
        )


def _demand(
    spent: float | None, queued: float | None, time: float, facts: Mapping[str, Any]
) -> float | None:
    """The share of the time in which they ran, or would have if there had been a core.

    Where the system does not tell how long they queued for one, CPU time is held against what a
    process could get: on a loaded machine no process has a core.
    """
    if spent is None:
        return None
    if queued is not None:
        return min(1.0, (spent + queued) / time)
    told, cores = facts.get("cores"), cores_of(facts)
    load = _number(told.get("load")) if isinstance(told, Mapping) else None
    fair = min(1.0, cores / load) if cores and load else 1.0
    return min(1.0, spent / (time * fair))


def _used(
    usage: Mapping[str, Any], spent: float | None, wall: float, cores: float | None
) -> float | None:
    """By all processes on the cores, or by this program of what a container may use."""
    shares = [_number(usage.get("busy"))]
    own = _number(usage.get("process_s"))
    if own is not None and spent is not None and cores:
        shares.append(min(1.0, (own + spent) / (wall * cores)))
    known = [share for share in shares if share is not None]
    return max(known) if known else None


def used_by_others(facts: Mapping[str, Any]) -> float | None:
    """The share of the cores' time that others used than the program and its workers."""
    usage, cores = facts.get("usage"), cores_of(facts)
    if not isinstance(usage, Mapping) or cores is None:
        return None
    wall, busy = _number(usage.get("wall_s")), _number(usage.get("busy"))
    told = usage.get("workers")
    own = [_number(usage.get("process_s"))]
    own.append(_number(told.get("cpu_s")) if isinstance(told, Mapping) else None)
    spent = [time for time in own if time is not None]
    if not wall or busy is None or len(spent) < len(own):
        return None
    return max(0.0, busy - sum(spent) / (wall * cores))


def cores_of(facts: Mapping[str, Any]) -> float | None:
    """The cores that the program can have; None if the recording does not tell."""
    told = facts.get("cores")
    cores = _number(told.get("effective")) if isinstance(told, Mapping) else None
    return cores if cores is not None and cores >= 1 else None


def _number(told: Any) -> float | None:
    is_number = isinstance(told, int | float) and not isinstance(told, bool)
    return float(told) if is_number and math.isfinite(told) and told >= 0 else None
