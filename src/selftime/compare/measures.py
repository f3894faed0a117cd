"""What each step of a recording takes: times, and counts that are exact."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.device.work import device_work
from selftime.analysis.requirements import Need, missing
from selftime.arrays import Floats
from selftime.compare.amounts import Windows, windows
from selftime.compare.times import step_times, unrecorded
from selftime.nesting import NONE
from selftime.trace import Trace
from selftime.units import Unit


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that a step takes."""

    name: str
    doc: str
    unit: Unit
    of: Callable[[Trace, Windows], Floats]
    """What each step takes; empty where it is not known."""
    needs: tuple[Need, ...] = ()
    """What a recording must hold for it to be known."""
    is_exact: bool = True
    """Whether it is counted: the same program takes the same."""


def measured(trace: Trace) -> dict[str, Floats]:
    """What each step that counts takes, by measure; what is not told is left out."""
    steps = windows(trace)
    found = {}
    for name, measure in MEASURES.items():
        if not missing(trace, ("steps", *measure.needs)):
            values = measure.of(trace, steps)
            if values.size:
                found[name] = values
    return found


def every_step(trace: Trace) -> Windows:
    """All steps, also those that stand in no median."""
    steps = trace.view("steps").select("start", "host_time")
    start = steps["start"].to_numpy()
    return Windows(start, start + steps["host_time"].to_numpy())


def _in_each(steps: Windows, instants: pl.Series, much: pl.Series | None = None) -> Floats:
    """How many of the instants lie in each step, or how much of what they have."""
    step = steps.of(instants.cast(pl.Int64).to_numpy())
    inside = step != NONE
    weights = None if much is None else much.fill_null(0).to_numpy().astype(np.float64)[inside]
    counts = np.bincount(step[inside], weights, minlength=steps.count)
    return counts.astype(np.float64)


def _operators(trace: Trace, steps: Windows) -> Floats:
    return _in_each(steps, trace.slices.filter(pl.col("category") == "cpu_op")["start"])


def _launches(trace: Trace, steps: Windows) -> Floats:
    return _in_each(steps, trace.view("launches", by="launch")["start"])


def _syncs(trace: Trace, steps: Windows) -> Floats:
    return _in_each(steps, trace.view("syncs", by="call")["start"])


def _moved(trace: Trace) -> pl.DataFrame:
    """Copies and fills, with the instant at which each was launched, else began."""
    work = device_work(trace).filter(pl.col("kind").is_in(["memcpy", "memset"]))
    told = trace.device_args.select("id", "bytes")
    begun = pl.coalesce("launched", "start")
    return work.select("id", begun=begun).join(told, on="id", how="left", maintain_order="left")


def _copies(trace: Trace, steps: Windows) -> Floats:
    return _in_each(steps, _moved(trace)["begun"])


def _copied(trace: Trace, steps: Windows) -> Floats:
    moved = _moved(trace)
    return _in_each(steps, moved["begun"], moved["bytes"])


def _allocations(trace: Trace, steps: Windows) -> Floats:
    return _in_each(steps, trace.memory.filter(pl.col("bytes") > 0)["time"])


def _peaks(trace: Trace, steps: Windows) -> Floats:
    """The largest rise of a device's total in each step, in bytes."""
    rises = np.zeros(steps.count)
    for _, events in trace.memory.group_by("device_type", "device", maintain_order=True):
        sizes, totals = events["bytes"].to_numpy(), events["allocated"].to_numpy()
        step = steps.of(events["time"].to_numpy())
        for number in range(steps.count):
            inside = np.flatnonzero(step == number)
            if inside.size:
                before = totals[inside[0]] - sizes[inside[0]]
                rises[number] = max(rises[number], float(totals[inside].max() - before))
    return rises


_ALL: Final = (
    Measure(
        "step_ms",
        "Time of a step that nobody recorded.",
        "text",
        lambda trace, _: unrecorded(trace) / 1e6,
        is_exact=False,
    ),
    Measure(
        "device_ms",
        "Device step time: from the end of one step's device work to that of the next.",
        "text",
        lambda trace, _: step_times(trace, "device_time") / 1e6,
        ("device",),
        is_exact=False,
    ),
    Measure(
        "host_ms",
        "Host step time.",
        "text",
        lambda trace, _: step_times(trace, "host_time") / 1e6,
        is_exact=False,
    ),
    Measure(
        "operators", "Operators, those that others call too.", "count", _operators, ("operators",)
    ),
    Measure("launches", "Calls that put work on a device.", "count", _launches, ("device",)),
    Measure("syncs", "Waits of the host for a device.", "count", _syncs, ("device",)),
    Measure(
        "copies", "Copies and fills on a device, from it and to it.", "count", _copies, ("device",)
    ),
    Measure("copied_bytes", "Bytes of those that tell their size.", "bytes", _copied, ("device",)),
    Measure(
        "allocations",
        "Allocations of memory, on the host or a device.",
        "count",
        _allocations,
        ("memory",),
    ),
    Measure(
        "peak_bytes",
        "Bytes allocated at once beyond those at the step's begin, on one device.",
        "bytes",
        _peaks,
        ("memory",),
    ),
)

MEASURES: Final = {measure.name: measure for measure in _ALL}
"""Every measure, by name."""
