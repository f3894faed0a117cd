"""Measures each step of a recording: step times in ms, and counts such as operators and copies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.device.device_work import device_work
from selftime.analysis.memory.memory_records import memory_records_with_totals
from selftime.analysis.recording_requirements import RecordingNeed, missing_requirement_sentences
from selftime.array_types import Floats
from selftime.compare.amounts_per_step import StepWindows, step_windows
from selftime.compare.step_times import step_times, unrecorded_step_times
from selftime.nesting import NO_SLICE
from selftime.trace import Trace
from selftime.units import Unit


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity that is measured in each step, such as host time or the number of operators."""

    name: str
    doc: str
    unit: Unit
    per_step: Callable[[Trace, StepWindows], Floats]
    """Function that returns one value per step; an empty array if the recording lacks the data."""
    needs: tuple[RecordingNeed, ...] = ()
    """Data that a recording must contain for the measure, such as memory events; () if none."""
    is_exact: bool = True
    """Whether the measure is a count that is equal in every run of the same program; False for
    times."""


def measure_steps(trace: Trace) -> dict[str, Floats]:
    """Returns one value per steady step for each measure that is known, by the measure's name."""
    steps = step_windows(trace)
    found = {}
    for name, measure in MEASURES.items():
        if not missing_requirement_sentences(trace, ("steps", *measure.needs)):
            values = measure.per_step(trace, steps)
            if values.size:
                found[name] = values
    return found


def all_step_windows(trace: Trace) -> StepWindows:
    """Returns the begin and end of every step of a recording, steady or not, in ns."""
    steps = trace.view("steps").select("start", "host_time")
    start = steps["start"].to_numpy()
    return StepWindows(start, start + steps["host_time"].to_numpy())


def _count_or_sum_per_step(
    steps: StepWindows, times: pl.Series, amounts: pl.Series | None = None
) -> Floats:
    """Returns for each step the number of `times` (ns) in it, or the sum of their `amounts`."""
    step = steps.step_index_at(times.cast(pl.Int64).to_numpy())
    inside = step != NO_SLICE
    weights = (
        None if amounts is None else amounts.fill_null(0).to_numpy().astype(np.float64)[inside]
    )
    counts = np.bincount(step[inside], weights, minlength=steps.count)
    return counts.astype(np.float64)


def _operator_counts(trace: Trace, steps: StepWindows) -> Floats:
    return _count_or_sum_per_step(
        steps, trace.slices.filter(pl.col("category") == "cpu_op")["start"]
    )


def _launch_counts(trace: Trace, steps: StepWindows) -> Floats:
    return _count_or_sum_per_step(steps, trace.view("launches", by="launch")["start"])


def _sync_counts(trace: Trace, steps: StepWindows) -> Floats:
    return _count_or_sum_per_step(steps, trace.view("syncs", by="call")["start"])


def _copies_with_launch_times(trace: Trace) -> pl.DataFrame:
    """Returns each copy's and memset's id, bytes, and launch (or else start) time in ns."""
    work = device_work(trace).filter(pl.col("kind").is_in(["memcpy", "memset"]))
    told = trace.device_args.select("id", "bytes")
    begun = pl.coalesce("launched", "start")
    return work.select("id", begun=begun).join(told, on="id", how="left", maintain_order="left")


def _copy_counts(trace: Trace, steps: StepWindows) -> Floats:
    return _count_or_sum_per_step(steps, _copies_with_launch_times(trace)["begun"])


def _copied_bytes(trace: Trace, steps: StepWindows) -> Floats:
    moved = _copies_with_launch_times(trace)
    return _count_or_sum_per_step(steps, moved["begun"], moved["bytes"])


def _allocation_counts(trace: Trace, steps: StepWindows) -> Floats:
    return _count_or_sum_per_step(steps, trace.memory.filter(pl.col("bytes") > 0)["time"])


def _peak_increases_in_bytes(trace: Trace, steps: StepWindows) -> Floats:
    """Returns the largest increase of allocated bytes on any device within each step.

    Totals that the trace lacks are summed from the records. Steps whose peak is not known are left
    out: the first of the recording if its sum may decide, as releases of what was allocated before
    are missing in it. All are if a record tells neither its bytes nor the total after it.
    """
    is_untold = pl.col("bytes").is_null() & (pl.col("allocated").fill_null(-1) < 0)
    if trace.memory.select(is_untold.any()).item():
        return np.zeros(0)
    rises = {"recorded": np.zeros(steps.count), "summed": np.zeros(steps.count)}
    records = memory_records_with_totals(trace)
    for (_, _, how), events in records.group_by("type", "device", "how", maintain_order=True):
        sizes, totals = events["bytes"].to_numpy(), events["allocated"].to_numpy()
        step = steps.step_index_at(events["time"].to_numpy())
        own = rises[str(how)]
        for number in range(steps.count):
            inside = np.flatnonzero(step == number)
            if inside.size:
                before = totals[inside[0]] - sizes[inside[0]]
                own[number] = max(own[number], float(totals[inside].max() - before))
    is_first = steps.start <= all_step_windows(trace).start.min()
    is_known = ~is_first | (rises["summed"] <= rises["recorded"])
    known: Floats = np.maximum(rises["recorded"], rises["summed"])[is_known]
    return known


_MEASURES: Final = (
    Measure(
        "step_ms",
        "Time of steps that ran while the profiler was off.",
        "text",
        lambda trace, _: unrecorded_step_times(trace) / 1e6,
        is_exact=False,
    ),
    Measure(
        "device_ms",
        "Device step time: from the end of one step's device work to the end of the next step's.",
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
        "Calls of operators, including operators that other operators call.",
        "count",
        _operator_counts,
        ("operators",),
    ),
    Measure(
        "launches", "Calls that launch work on a device.", "count", _launch_counts, ("device",)
    ),
    Measure("syncs", "Waits of the host for a device.", "count", _sync_counts, ("device",)),
    Measure(
        "copies", "Copies and memsets on, from and to devices.", "count", _copy_counts, ("device",)
    ),
    Measure(
        "copied_bytes",
        "Bytes that copies and memsets of known size move or fill.",
        "bytes",
        _copied_bytes,
        ("device",),
    ),
    Measure(
        "allocations",
        "Allocations of memory, on the host or a device.",
        "count",
        _allocation_counts,
        ("memory",),
    ),
    Measure(
        "peak_bytes",
        "Largest increase of allocated bytes above the step's start, on any one device.",
        "bytes",
        _peak_increases_in_bytes,
        ("memory",),
    ),
)

MEASURES: Final = {measure.name: measure for measure in _MEASURES}
"""All measures of a step, by name."""
