"""Reads from the recorder's facts which processor a recording ran on, and who used its cores."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from selftime.trace import Trace


def recorded_machine(trace: Trace) -> Mapping[str, Any]:
    """Returns the facts of the recording, or of the ledger of a run without one."""
    machine = trace.run.facts.get("machine")
    is_ledger_alone = trace.run.source == trace.source != ""
    return machine if is_ledger_alone and isinstance(machine, dict) else trace.facts


def processor_name(trace: Trace) -> str | None:
    """Returns the name of the CPU; None if it was not recorded."""
    name = recorded_machine(trace).get("processor")
    return name if isinstance(name, str) and name else None


def usable_cores(trace: Trace) -> float | None:
    """Returns how many CPU cores the process could use; None if it was not recorded."""
    told = recorded_machine(trace).get("cores")
    cores = told.get("effective") if isinstance(told, dict) else None
    return float(cores) if isinstance(cores, int | float) and cores > 0 else None


def cores_used_by_others(trace: Trace) -> float | None:
    """Returns the mean number of CPU cores that other programs used; None if not recorded."""
    usage, machine = _fact_group(trace, "usage"), _fact_group(trace, "cores")
    workers = usage.get("workers")
    in_workers = workers.get("cpu_s") if isinstance(workers, dict) else 0.0
    told = [usage.get("busy"), machine.get("affinity"), usage.get("process_s"), in_workers]
    wall = usage.get("wall_s")
    known = [float(value) for value in told if isinstance(value, int | float)]
    if len(known) < len(told) or not isinstance(wall, int | float) or wall <= 0:
        return None
    busy, count, own, theirs = known
    return max(busy * count - (own + theirs) / wall, 0.0)


def core_wait_share(trace: Trace) -> float | None:
    """Returns in which share of the time the main thread was ready to run and had no core.

    It is that of all steps of the run, or of the recorded ones if these waited longer; None if
    neither was recorded.
    """
    usage = _fact_group(trace, "usage")
    segments = trace.run.segments.filter(pl.col("queued").is_not_null())
    pairs = [
        (usage.get("queued_s"), usage.get("wall_s")),
        (float(segments["queued"].sum()), float(segments["duration"].sum())),
    ]
    shares = [
        queued / wall
        for queued, wall in pairs
        if isinstance(queued, int | float) and isinstance(wall, int | float) and wall > 0
    ]
    return min(max(0.0, *shares), 1.0) if shares else None


def _fact_group(trace: Trace, name: str) -> dict[str, Any]:
    """Returns the recorder's facts under one key, such as `usage`; {} if not recorded."""
    part = trace.facts.get(name)
    return part if isinstance(part, dict) else {}
