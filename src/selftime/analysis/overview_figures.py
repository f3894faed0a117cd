"""Computes what a recording shows at a glance: step time, its parts, devices, host threads."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.account.step_bounds import bound_by_phrase, bounds_of_counted_steps
from selftime.analysis.device.device_work import device_work
from selftime.analysis.device.utilisation import (
    OverviewFigure,
    device_utilisation_figures,
    share_figure,
)
from selftime.analysis.ranks.rank_and_process_groups import rank_and_size
from selftime.analysis.recording_requirements import REQUIREMENT_BY_NEED, RecordingNeed
from selftime.analysis.recording_slowdown import recording_slowdown
from selftime.analysis.slice_filters import covered_time, slices_on
from selftime.analysis.steps.bound_by import step_bounds
from selftime.analysis.steps.breakdown import (
    DEVICE_TIME_CATEGORIES,
    covered_time_in_windows,
    host_slices_without_step_marks,
    step_breakdown,
)
from selftime.analysis.steps.steady_steps import counted_step_spans, steps_with_counted_flags
from selftime.analysis.steps.step_boundaries import recording_window
from selftime.trace import Trace

_MAX_LISTED_HOST_THREADS: Final = 8
"""Largest number of host threads that are listed; the busiest threads come first."""

_MIN_STEPS_FOR_DEVIATION: Final = 2
"""Smallest number of counted steps for which a deviation and a percentile are shown."""

_STEP_TIME_LABELS_AND_DEFINITIONS: Final = {
    "time": (
        "step time",
        "From the end of the previous step until this one and its device work are done.",
    ),
    "host_time": ("host time", "From a step's begin to its end on the host."),
    "device_time": (
        "device time",
        "From the end of the previous step's device work to that of its own.",
    ),
    "lag": ("lag", "From a step's end on the host to the end of its device work."),
}

_STEP_PART_DEFINITIONS: Final = {
    "kernel": "A kernel ran, other than a collective.",
    "memcpy": "A copy ran, and none of the above.",
    "memset": "A fill ran, and none of the above.",
    "communication": "A collective ran, and none of the above.",
    "runtime": "The host was in a runtime call, and none of the above.",
    "data_loading": "The host waited for the next batch, and none of the above.",
    "cpu": "The host was in an operator or annotation, and none of the above.",
    "other": "None of the above was recorded.",
    "all_communication": "A collective ran, overlaps included.",
}

_HOST_BOUND: Final = ("launch-bound", "gap-bound", "mixed")
"""Names of what bounds a step if a device waits for the host."""

_DEVICE_STEP_PARTS: Final = (*DEVICE_TIME_CATEGORIES, "all_communication")
"""Time categories that are left out if a trace has neither device work nor collectives."""

_KINDS_OF_OPTIONALLY_RECORDED_DATA: Final[tuple[RecordingNeed, ...]] = (
    "stacks",
    "shapes",
    "memory",
    "modules",
)


def overview_figures(trace: Trace) -> list[OverviewFigure]:
    """Returns what a recording shows at a glance, in reading order.

    The time of a step, its parts, devices, host threads, and how it was recorded.
    """
    steps = steps_with_counted_flags(trace)
    return [
        *_figures_of_steps(trace, steps),
        *_figures_of_step_parts(trace, steps),
        *device_utilisation_figures(trace, steps),
        *_figures_of_host_threads(trace, steps),
        *_figures_of_recording(trace),
    ]


def _figures_of_steps(trace: Trace, steps: pl.DataFrame) -> Iterator[OverviewFigure]:
    if not steps.height:
        return
    found = step_bounds(trace)
    work = device_work(trace)
    has_launches = not work.height or work["launched"].is_not_null().any()
    is_known = found.bound_by is not None or (found.busy_share is not None and has_launches)
    bounds = bounds_of_counted_steps(trace) if is_known else ()
    text = "What a step waits for most, as in the answer and the view `account`."
    if found.bound_by in _HOST_BOUND and trace.frame_args.height:
        text += " Stacks were recorded, which slows the host: without them the device waits less."
    phrase = bound_by_phrase(bounds) if bounds else None
    yield OverviewFigure("steps", "bound by", None, "text", text, phrase)
    text = (
        "Share of the counted steps' time with device work; of its span from first to last if less."
    )
    yield OverviewFigure("steps", "busy", found.busy_share, "ratio", text)
    text = "Share of device work launched onto an idle stream."
    yield OverviewFigure("steps", "idle launches", found.idle_launch_share, "ratio", text)
    counted = steps.filter("counted")
    text = f"Number of steps, found by the {steps['source'][0]}."
    yield OverviewFigure("steps", "found", float(steps.height), "count", text)
    text = "Steps without the first, partial ones and outliers."
    yield OverviewFigure("steps", "counted", float(counted.height), "count", text)
    timed = steps.with_columns(time=pl.col("done") - pl.col("begin"))
    for time in _STEP_TIME_LABELS_AND_DEFINITIONS:
        if timed[time].is_not_null().any():
            yield from _figures_of_step_time(time, timed.filter("counted")[time].drop_nulls())


def _figures_of_step_time(time_column: str, times: pl.Series) -> Iterator[OverviewFigure]:
    """Yields median, deviation and 95th percentile of a time column over the counted steps."""
    what, means = _STEP_TIME_LABELS_AND_DEFINITIONS[time_column]
    values = times.to_numpy().astype(np.float64)
    middle = float(np.median(values)) if values.size else None
    yield OverviewFigure("steps", f"{what}, median", middle, "ns", means)
    if middle is None or values.size < _MIN_STEPS_FOR_DEVIATION:
        return
    deviation = float(np.median(np.abs(values - middle)))
    text = "Median absolute deviation over the counted steps."
    yield OverviewFigure("steps", f"{what}, deviation", deviation, "ns", text)
    high = float(np.percentile(values, 95, method="inverted_cdf"))
    text = "95th percentile over the counted steps."
    yield OverviewFigure("steps", f"{what}, p95", high, "ns", text)


def _figures_of_step_parts(trace: Trace, steps: pl.DataFrame) -> Iterator[OverviewFigure]:
    """Yields the mean duration of the counted steps, and their mean time in each category."""
    if not steps.height:
        return
    table, counted = step_breakdown(trace), steps["counted"]
    table = table.filter(counted) if counted.any() else table
    whole = _mean_time_or_none(table["time"])
    text = "Mean time of the counted steps; parts as in the view `steps` add up to it."
    yield OverviewFigure("execution", "average step", whole, "ns", text)
    for part, text in _STEP_PART_DEFINITIONS.items():
        value = _mean_time_or_none(table[part])
        if value is None and part in _DEVICE_STEP_PARTS:
            continue
        share = value / whole if value is not None and whole else None
        metric = part.replace("_", " ")
        yield OverviewFigure("execution", metric, value, "ns", text, share=share)


def _mean_time_or_none(times: pl.Series) -> float | None:
    mean: Any = times.mean()
    return None if mean is None else float(mean)


def _figures_of_host_threads(trace: Trace, steps: pl.DataFrame) -> Iterator[OverviewFigure]:
    """Yields the share of the counted steps' time in which each host thread was busy."""
    host = host_slices_without_step_marks(slices_on(trace, "host"), steps)
    windows = counted_step_spans(steps)
    start, end = windows["begin"].to_numpy(), windows["done"].to_numpy()
    whole = int((end - start).sum())
    busy = {
        int(track): int(covered_time_in_windows(covered_time(own), start, end).sum())
        for (track,), own in host.group_by("track", maintain_order=True)
    }
    busy = {track: time for track, time in busy.items() if time}
    if not busy:
        return
    text = "Share of the counted steps' time in which a thread ran operators or calls."
    yield share_figure(
        "host",
        "busy",
        int(covered_time_in_windows(covered_time(host), start, end).sum()),
        whole,
        text,
    )
    text = "Number of threads that ran operators or calls in the counted steps."
    yield OverviewFigure("host", "threads", float(len(busy)), "count", text)
    for track in sorted(busy, key=lambda track: (-busy[track], track))[:_MAX_LISTED_HOST_THREADS]:
        text = "Share of the counted steps' time in which this thread ran operators or calls."
        yield share_figure("host", _host_thread_name(trace, track), busy[track], whole, text)


def _host_thread_name(trace: Trace, track: int) -> str:
    row = trace.tracks.filter(pl.col("id") == track).row(0, named=True)
    return str(row["name"] or f"thread {row['tid']}")


def _figures_of_recording(trace: Trace) -> Iterator[OverviewFigure]:
    start, end = recording_window(trace)
    if end > start:
        text = "From the first event to the end of the last, on host and devices."
        yield OverviewFigure("trace", "recorded", float(end - start), "ns", text)
    rank, size = rank_and_size(trace)
    if rank is not None:
        words = str(rank) if size is None else f"{rank} of {size}"
        text = "The number of the process in the job, from 0."
        yield OverviewFigure("trace", "rank", float(rank), "id", text, words)
    kept = (
        ", ".join(
            need
            for need in _KINDS_OF_OPTIONALLY_RECORDED_DATA
            if REQUIREMENT_BY_NEED[need].present(trace)
        )
        or "none"
    )
    text = "Recorded data that slow the host down."
    yield OverviewFigure("trace", "recorded with", None, "text", text, kept)
    slowdown = recording_slowdown(trace)
    if slowdown is not None:
        text = "Time of a recorded step divided by that of the unrecorded steps around it."
        ratio = slowdown.of_typical_step
        yield OverviewFigure("trace", "recording overhead", ratio, "times", text)
