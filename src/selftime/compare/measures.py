"""Measures of each step of a recording: times, and exact counts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.device.work import device_work
from selftime.analysis.requirements import Need, missing
from selftime.arrays import Floats
from selftime.compare.amounts import Windows, windows
from selftime.compare.times import step_times, unrecorded_step_times
from selftime.nesting import NONE
from selftime.trace import Trace
from selftime.units import Unit


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity that is measured per step."""

    name: str
    doc: str
    unit: Unit
    of: Callable[[Trace, Windows], Floats]
    """Computes the value for each step; empty if unknown."""
    needs: tuple[Need, ...] = ()
    """What a recording must contain to compute it."""
    is_exact: bool = True
    """Whether it is an exact count, equal in each run of the same program."""


def measure_steps(trace: Trace) -> dict[str, Floats]:
    """Returns the values of each steady step by measure, without unknown measures."""
    steps = windows(trace)
    found = {}
    for name, measure in MEASURES.items():
        if not missing(trace, ("steps", *measure.needs)):
            values = measure.of(trace, steps)
            if values.size:
                found[name] = values
    return found


def all_steps(trace: Trace) -> Windows:
    """Returns all steps, also those that are not steady."""
    steps = trace.view("steps").select("start", "host_time")
    start = steps["start"].to_numpy()
    return Windows(start, start + steps["host_time"].to_numpy())


def _sum_per_step(steps: Windows, instants: pl.Series, much: pl.Series | None = None) -> Floats:
    """Returns the number of times in each step, or the sum of their amounts."""
    step = steps.of(instants.cast(pl.Int64).to_numpy())
    inside = step != NONE
    weights = None if much is None else much.fill_null(0).to_numpy().astype(np.float64)[inside]
    counts = np.bincount(step[inside], weights, minlength=steps.count)
    return counts.astype(np.float64)


def _operators(trace: Trace, steps: Windows) -> Floats:
    return _sum_per_step(steps, trace.slices.filter(pl.col("category") == "cpu_op")["start"])


def _launches(trace: Trace, steps: Windows) -> Floats:
    return _sum_per_step(steps, trace.view("launches", by="launch")["start"])


def _syncs(trace: Trace, steps: Windows) -> Floats:
    return _sum_per_step(steps, trace.view("syncs", by="call")["start"])


def _copy_times(trace: Trace) -> pl.DataFrame:
    """Returns copies and memsets with their launch time, else their start, in ns."""
    work = device_work(trace).filter(pl.col("kind").is_in(["memcpy", "memset"]))
    told = trace.device_args.select("id", "bytes")
    begun = pl.coalesce("launched", "start")
    return work.select("id", begun=begun).join(told, on="id", how="left", maintain_order="left")


def _copies(trace: Trace, steps: Windows) -> Floats:
    return _sum_per_step(steps, _copy_times(trace)["begun"])


def _copied_bytes(trace: Trace, steps: Windows) -> Floats:
    moved = _copy_times(trace)
    return _sum_per_step(steps, moved["begun"], moved["bytes"])


def _allocations(trace: Trace, steps: Windows) -> Floats:
    return _sum_per_step(steps, trace.memory.filter(pl.col("bytes") > 0)["time"])


def _peak_rises(trace: Trace, steps: Windows) -> Floats:
    """Returns the largest increase of a device's allocated bytes within each step."""
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
        "Step time without the recorder.",
        "text",
        lambda trace, _: unrecorded_step_times(trace) / 1e6,
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
        "operators",
        "Operators, including those called by others.",
        "count",
        _operators,
        ("operators",),
    ),
    Measure("launches", "Calls that launch work on a device.", "count", _launches, ("device",)),
    Measure("syncs", "Waits of the host for a device.", "count", _syncs, ("device",)),
    Measure("copies", "Copies and memsets on, from and to devices.", "count", _copies, ("device",)),
    Measure(
        "copied_bytes",
        "Bytes of copies and memsets of known size.",
        "bytes",
        _copied_bytes,
        ("device",),
    ),
    Measure(
        "allocations",
        "Allocations of memory, on the host or a device.",
        "count",
        _allocations,
        ("memory",),
    ),
    Measure(
        "peak_bytes",
        "Peak of allocated bytes above those at the step's begin, on one device.",
        "bytes",
        _peak_rises,
        ("memory",),
    ),
)

MEASURES: Final = {measure.name: measure for measure in _ALL}
"""Every measure, by name."""
