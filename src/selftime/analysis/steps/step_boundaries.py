"""Where a program's steps begin and end, by the best evidence that a trace holds.

Steps are taken from the profiler's own annotations on the host, else from annotations that repeat
as steps do, else from the optimizer's steps, else from the profiler's marks on the device, else
from a repetition that can be no other; else the whole recording is one. Device-side copies of
annotations last from the first kernel to the last, if that: where nothing else is left of the
profiler's steps, they tell when the first work of each was launched, and no more.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.marked_steps import device_steps, marked_steps
from selftime.analysis.steps.recurring_steps import recurring_steps
from selftime.nesting import nest
from selftime.trace import Trace

SOURCES: Final = ("profiler", "annotation", "optimizer", "device", "periodicity", "window")
"""What may tell the steps, best first."""

_SCHEMA: Final = {
    "number": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "source": pl.String,
    "cut": pl.String,
    "mark": pl.String,
    "track": pl.UInt32,
}


@cached_per_trace
def find_steps(trace: Trace) -> pl.DataFrame:
    """Steps in order of time, one after the other.

    Columns: number; start and end, in ns; source, one of `SOURCES`; cut, what is missing of a step
    at an end of the recording, or null; mark, the name of the slice that tells it, and track, the
    host track it lies on, both null for a window.
    """
    for source, steps in _candidates(trace):
        if steps is not None and steps.height:
            told = steps.with_columns(source=pl.lit(source))
            return told.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())
    return pl.DataFrame(schema=_SCHEMA)


def _candidates(trace: Trace) -> Iterator[tuple[str, pl.DataFrame | None]]:
    every = slices_on(trace, "host")
    yield "profiler", _profiler_steps(every)
    host = every.filter(pl.col("duration").is_not_null())
    yield "annotation", marked_steps(host)
    yield "optimizer", _between_optimizer_steps(host)
    yield "device", device_steps(trace, _last_end(host) if host.height else None)
    yield "periodicity", recurring_steps(trace, host)
    start, end = window(trace)
    if end > start:
        whole = {"number": [0], "start": [start], "end": [end]}
        yield "window", pl.DataFrame(whole).with_columns(cut=None, mark=None, track=None)


def window(trace: Trace) -> tuple[int, int]:
    """Begin and end of the recording, from host and device work; the profiler's own is left out."""
    parts = [slices_on(trace, kind) for kind in ("host", "python", "device")]
    work = [part for part in parts if part.height]
    if not work:
        return 0, 0
    begins: list[Any] = [part["start"].min() for part in work]
    return min(begins), max(_last_end(part) for part in work)


def _last_end(slices: pl.DataFrame) -> int:
    return int(slices.select((pl.col("start") + pl.col("duration").fill_null(0)).max()).item())


def _profiler_steps(host: pl.DataFrame) -> pl.DataFrame | None:
    """The profiler's steps on the thread that has most of them, of the outermost level.

    A step whose end was not recorded lasts until the next, or the end of the recording.
    """
    marks = filter_by_name(host, lambda name: names.step_number(name) is not None)
    if not marks.height:
        return None
    marks = _busiest_track(marks).sort("start", pl.col("duration").fill_null(0).neg())
    begin = marks["start"]
    until = begin.shift(-1).fill_null(max(_last_end(host), int(begin[-1])))
    end = (begin + marks["duration"]).fill_null(until)
    unended = pl.when(pl.col("duration").is_null()).then(pl.lit("its end was not recorded"))
    text = marks["name"].cast(pl.String)
    table = marks.select(
        "start", "track", cut=unended, mark=text, end=end, number=_numbers(text, names.step_number)
    )
    table = _outer_level(table)
    reach = pl.col("end").shift(1).cum_max().fill_null(-1)
    return table.filter(pl.col("start") >= reach)


def _numbers(texts: pl.Series, read: Callable[[str], int | None]) -> pl.Series:
    return pl.Series([read(text) for text in texts.to_list()], dtype=pl.Int64)


def _outer_level(steps: pl.DataFrame) -> pl.DataFrame:
    """Of steps within steps the outermost that are several: one around all others is no step."""
    zeros = np.zeros(steps.height, np.int64)
    depth = nest(zeros, steps["start"].to_numpy(), steps["end"].to_numpy(), zeros).depth
    several = np.flatnonzero(np.bincount(depth) > 1)
    return steps.filter(pl.Series(depth == (several[0] if several.size else 0)))


def _between_optimizer_steps(host: pl.DataFrame) -> pl.DataFrame | None:
    """From the end of one optimizer step to the end of the next; the first began before.

    One alone tells no step: nobody knows when it began. What follows the last is a step that had
    not ended.
    """
    marks = filter_by_name(host, names.is_optimizer_step)
    if not marks.height:
        return None
    marks = _busiest_track(marks).sort("start")
    first = marks["name"].cast(pl.String)[0]
    marks = marks.filter(pl.col("name").cast(pl.String) == first)
    if marks.height < _LEAST_OPTIMIZER_STEPS:
        return None
    ends = (marks["start"] + marks["duration"]).to_numpy()
    ends = np.maximum.accumulate(ends)
    last = _last_end(host)
    follows = bool((host["start"] >= ends[-1]).any())
    begins = np.append(host.select(pl.col("start").min()).item(), ends if follows else ends[:-1])
    cut: list[str | None] = [None] * begins.size
    cut[0] = "it began before"
    if follows:
        cut[-1] = "the recording ended within it"
    return pl.DataFrame(
        {
            "number": np.arange(begins.size),
            "start": begins,
            "end": np.append(ends, last) if follows else ends,
            "cut": pl.Series(cut, dtype=pl.String),
            "mark": [first] * begins.size,
            "track": [marks["track"][0]] * begins.size,
        }
    )


_LEAST_OPTIMIZER_STEPS: Final = 2


def _busiest_track(marks: pl.DataFrame) -> pl.DataFrame:
    """The marks of the track that has most, and of those that have as many, most time in them."""
    tracks = marks.group_by("track").agg(pl.len(), pl.col("duration").sum())
    tracks = tracks.sort("len", "duration", "track", descending=[True, True, False])
    return marks.filter(pl.col("track") == tracks["track"][0])
