"""The recording at a glance: its steps and what bounds them, its devices, its host."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.device.figures import Figure, device_figures, ratio
from selftime.analysis.ranks.membership import place
from selftime.analysis.requirements import NEEDS, Need
from selftime.analysis.slice_filters import covered_time, slices_on
from selftime.analysis.steps.bound_by import MEANING, PHRASE, bounds
from selftime.analysis.steps.breakdown import breakdown, within
from selftime.analysis.steps.category_times import DEVICE_CATEGORIES, without_marks
from selftime.analysis.steps.steady_steps import assessed_steps, counted_spans
from selftime.analysis.steps.step_boundaries import window
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view

_THREADS: Final = 8
"""So many host threads are shown, the busiest first."""
_LEAST_SPREAD: Final = 2
"""One step has no spread."""
_TIMES: Final = {
    "time": (
        "step time",
        "From when the last step was done until this one is, its device work too.",
    ),
    "host_time": ("host time", "From a step's begin to its end on the host."),
    "device_time": (
        "device time",
        "From the end of the last step's device work to that of its own.",
    ),
    "lag": ("lag", "From a step's end on the host to the end of its device work."),
}
_PARTS: Final = {
    "kernel": "A kernel ran, other than a collective.",
    "memcpy": "A copy ran, and none of the above.",
    "memset": "A fill ran, and none of the above.",
    "communication": "A collective ran, and none of the above.",
    "runtime": "The host was in a runtime call, and none of the above.",
    "data_loading": "The host waited for the next batch, and none of the above.",
    "cpu": "The host was in an operator or annotation, and none of the above.",
    "other": "None of the above was recorded.",
    "all_communication": "A collective ran, whatever else did.",
}
_WAITING: Final = ("launch-bound", "gap-bound", "mixed")
"""Regimes in which a device waits for the host."""
_OF_DEVICES: Final = (*DEVICE_CATEGORIES, "all_communication")
"""Parts that are left out where a trace has no device work and no collective."""
_KEPT: Final[tuple[Need, ...]] = ("stacks", "shapes", "memory", "modules")


@view(
    Column("section", pl.String, "name", "One of steps, execution, device, host, trace."),
    Column("device", pl.Int32, "id", "The device, for rows of a device.", True),
    Column("metric", pl.String, "name", "What was measured."),
    Column("text", pl.String, "text", "The value as people read it; null where unknown.", True),
    Column("definition", pl.String, "sentence", "What it is, and of what."),
    Column("value", pl.Float64, "text", "The value as a number, in its unit.", True),
    Column("unit", pl.String, "name", "The unit of the value; `text` if it is no number."),
    Column("share", pl.Float64, "ratio", "For parts of a step: their share of it.", True),
)
def overview(trace: Trace) -> pl.DataFrame:
    """What a step takes and what bounds it, where its time goes, and how busy devices and host are.

    Every number says what it is. Medians, averages and shares are of the steps that count: not of
    the first, of partial ones and outliers. A dash stands for what the recording does not tell.
    """
    steps = assessed_steps(trace)
    figures = [
        *_step_figures(trace, steps),
        *_execution_figures(trace, steps),
        *device_figures(trace, steps),
        *_host_figures(trace, steps),
        *_recording_figures(trace),
    ]
    rows = [
        (f.section, f.device, f.metric, f.text, f.definition, f.value, f.unit, f.share)
        for f in figures
    ]
    return pl.DataFrame(rows, schema={c.name: c.dtype for c in overview.columns}, orient="row")


def _step_figures(trace: Trace, steps: pl.DataFrame) -> Iterator[Figure]:
    if not steps.height:
        return
    found = bounds(trace)
    means = MEANING[found.regime] if found.regime else "the recording does not tell"
    text = f"{means.capitalize()}."
    if found.regime in _WAITING and trace.frame_args.height:
        text += " Stacks were recorded, which slows the host: without them the device waits less."
    phrase = PHRASE[found.regime] if found.regime else None
    yield Figure("steps", "bound by", None, "text", text, phrase)
    text = "Share of the counted steps' time with work on a device; of the devices' span if less."
    yield Figure("steps", "busy", found.busy, "ratio", text)
    text = "Share of device work launched onto a stream with nothing left to do."
    yield Figure("steps", "idle launches", found.idle_launches, "ratio", text)
    counted = steps.filter("counted")
    text = f"Number of steps, found by the {steps['source'][0]}."
    yield Figure("steps", "found", float(steps.height), "count", text)
    text = "Steps without the first, partial ones and outliers."
    yield Figure("steps", "counted", float(counted.height), "count", text)
    timed = steps.with_columns(time=pl.col("done") - pl.col("begin"))
    for time in _TIMES:
        if timed[time].is_not_null().any():
            yield from _spread(time, timed.filter("counted")[time].drop_nulls())


def _spread(time: str, times: pl.Series) -> Iterator[Figure]:
    """Median, deviation and 95th percentile of a time of the counted steps."""
    what, means = _TIMES[time]
    values = times.to_numpy().astype(np.float64)
    middle = float(np.median(values)) if values.size else None
    yield Figure("steps", f"{what}, median", middle, "ns", means)
    if middle is None or values.size < _LEAST_SPREAD:
        return
    deviation = float(np.median(np.abs(values - middle)))
    text = "Median absolute deviation over the counted steps."
    yield Figure("steps", f"{what}, deviation", deviation, "ns", text)
    high = float(np.percentile(values, 95, method="inverted_cdf"))
    text = "95th percentile over the counted steps."
    yield Figure("steps", f"{what}, p95", high, "ns", text)


def _execution_figures(trace: Trace, steps: pl.DataFrame) -> Iterator[Figure]:
    """The average counted step, by category."""
    if not steps.height:
        return
    table, counted = breakdown(trace), steps["counted"]
    table = table.filter(counted) if counted.any() else table
    whole = _mean(table["time"])
    text = "Mean time of the counted steps; parts as in the view `steps` add up to it."
    yield Figure("execution", "average step", whole, "ns", text)
    for part, text in _PARTS.items():
        value = _mean(table[part])
        if value is None and part in _OF_DEVICES:
            continue
        share = value / whole if value is not None and whole else None
        metric = part.replace("_", " ")
        yield Figure("execution", metric, value, "ns", text, share=share)


def _mean(times: pl.Series) -> float | None:
    mean: Any = times.mean()
    return None if mean is None else float(mean)


def _host_figures(trace: Trace, steps: pl.DataFrame) -> Iterator[Figure]:
    """How busy the threads are in the counted steps."""
    host = without_marks(slices_on(trace, "host"), steps)
    windows = counted_spans(steps)
    start, end = windows["begin"].to_numpy(), windows["done"].to_numpy()
    whole = int((end - start).sum())
    busy = {
        int(track): int(within(covered_time(own), start, end).sum())
        for (track,), own in host.group_by("track", maintain_order=True)
    }
    busy = {track: time for track, time in busy.items() if time}
    if not busy:
        return
    text = "Share of the counted steps' time in which a thread ran operators or calls."
    yield ratio("host", "busy", int(within(covered_time(host), start, end).sum()), whole, text)
    text = "Threads that ran any in that time."
    yield Figure("host", "threads", float(len(busy)), "count", text)
    for track in sorted(busy, key=lambda track: (-busy[track], track))[:_THREADS]:
        text = "Share of that time in which this thread did."
        yield ratio("host", _thread(trace, track), busy[track], whole, text)


def _thread(trace: Trace, track: int) -> str:
    row = trace.tracks.filter(pl.col("id") == track).row(0, named=True)
    return str(row["name"] or f"thread {row['tid']}")


def _recording_figures(trace: Trace) -> Iterator[Figure]:
    start, end = window(trace)
    if end > start:
        text = "From the first event to the end of the last, on host and devices."
        yield Figure("trace", "recorded", float(end - start), "ns", text)
    rank, size = place(trace)
    if rank is not None:
        words = str(rank) if size is None else f"{rank} of {size}"
        text = "Which process of the job it is, from 0."
        yield Figure("trace", "rank", float(rank), "id", text, words)
    kept = ", ".join(need for need in _KEPT if NEEDS[need].present(trace)) or "none"
    text = "Recorded data that slow the host down."
    yield Figure("trace", "recorded with", None, "text", text, kept)
    overhead = trace.facts.get("overhead")
    slowed = overhead.get("ratio") if isinstance(overhead, dict) else None
    if isinstance(slowed, int | float):
        text = "Time of a recorded step divided by that of the unrecorded steps around it."
        yield Figure("trace", "recording overhead", float(slowed), "times", text)
