"""Finds where a program's steps begin and end, from the best evidence in a trace.

Steps are taken from the profiler's own annotations on the host, else from annotations that repeat,
else from the optimizer's steps, else from the profiler's marks on the device, else from a
repetition that must be the loop; else the whole recording is one step. The recorder's device-side
copies of annotations last at most from the first kernel to the last. Where only these are left of
the profiler's steps, they only show when the first work of each step was launched.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import device_work, recorder_end
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name, matches_name, slices_on
from selftime.analysis.steps.marked_steps import marked_steps, steps_marked_on_device
from selftime.analysis.steps.recurring_steps import recurring_steps
from selftime.nesting import nest_slices
from selftime.trace import Trace

_MAX_SHARE_OF_STEP_AFTER_RECORDER: Final = 0.01
"""Largest share of a step after the recorder stopped for the step to count as recorded: it stops
a moment before the mark of the last step ends."""
STEP_SOURCES: Final = ("profiler", "annotation", "optimizer", "device", "periodicity", "window")
"""How steps were found in a trace: from profiler steps, annotations and so on, most reliable first.
"""

_STEP_BOUNDARIES_SCHEMA: Final = {
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
    """Returns the program's steps in order of time, without overlap, one row each.

    Columns: number; start and end, in ns; source, one of `STEP_SOURCES`; cut, what is missing of a
    step at an end of the recording, or null; mark, the name of the slice that marks it, and track,
    the host track that it is on, both null for a window.
    """
    for source, steps in _sources_and_candidate_steps(trace):
        if steps is not None and steps.height:
            told = steps.with_columns(source=pl.lit(source))
            return told.select(
                pl.col(name).cast(dtype) for name, dtype in _STEP_BOUNDARIES_SCHEMA.items()
            )
    return pl.DataFrame(schema=_STEP_BOUNDARIES_SCHEMA)


def _sources_and_candidate_steps(trace: Trace) -> Iterator[tuple[str, pl.DataFrame | None]]:
    every = slices_on(trace, "host")
    yield "profiler", _profiler_steps(trace, every)
    host = every.filter(pl.col("duration").is_not_null())
    yield "annotation", marked_steps(host)
    yield "optimizer", _steps_between_optimizer_steps(host)
    yield (
        "device",
        steps_marked_on_device(trace, _last_slice_end_ns(host) if host.height else None),
    )
    yield "periodicity", recurring_steps(trace, host)
    start, end = recording_window(trace)
    if end > start:
        whole = {"number": [0], "start": [start], "end": [_host_end_of_window(trace, start, end)]}
        yield "window", pl.DataFrame(whole).with_columns(cut=None, mark=None, track=None)


def _host_end_of_window(trace: Trace, start: int, end: int) -> int:
    """Returns when the host ends a recording that is one step, in ns: `end` if a device does not.

    The step then ends with the device's work, if the host is known to have launched it.
    """
    work = device_work(trace).filter(pl.col("end") == end)
    host = [slices_on(trace, kind) for kind in ("host", "python")]
    ended = max((_last_slice_end_ns(part) for part in host if part.height), default=start)
    is_launched = bool((work["launched"] < ended).fill_null(value=False).any())
    return ended if start < ended < end and is_launched else end


@cached_per_trace
def recording_window(trace: Trace) -> tuple[int, int]:
    """Returns when the recording begins and ends, in ns, by its host slices and device work."""
    parts = [slices_on(trace, kind) for kind in ("host", "python", "device")]
    work = [part for part in parts if part.height]
    if not work:
        return 0, 0
    begins: list[Any] = [part["start"].min() for part in work]
    return min(begins), max(_last_slice_end_ns(part) for part in work)


def _last_slice_end_ns(slices: pl.DataFrame) -> int:
    return int(slices.select((pl.col("start") + pl.col("duration").fill_null(0)).max()).item())


def _profiler_steps(trace: Trace, host: pl.DataFrame) -> pl.DataFrame | None:
    """Returns the profiler's outermost steps on the thread that has most of them.

    A step without a recorded end lasts until the next, or the end of the recording. One whose mark
    outlasts the recorder ends with what was recorded.
    """
    is_mark = matches_name(host, lambda name: names.profiler_step_number(name) is not None)
    marks = host.filter(pl.Series(is_mark))
    if not marks.height:
        return None
    marks = _optimizer_marks_of_busiest_track(marks).sort(
        "start", pl.col("duration").fill_null(0).neg()
    )
    begin = marks["start"]
    until = begin.shift(-1).fill_null(max(_last_slice_end_ns(host), int(begin[-1])))
    end = (begin + marks["duration"]).fill_null(until)
    unended = pl.when(pl.col("duration").is_null()).then(pl.lit("its end was not recorded"))
    text = marks["name"].cast(pl.String)
    table = marks.select(
        "start",
        "track",
        cut=unended,
        mark=text,
        end=end,
        number=_parsed_step_numbers(text, names.profiler_step_number),
    )
    table = _outermost_steps(table)
    reach = pl.col("end").shift(1).cum_max().fill_null(-1)
    others = host.select("start", "duration").filter(pl.Series(~is_mark))
    return _cut_at_recorder_end(trace, table.filter(pl.col("start") >= reach), others)


def _cut_at_recorder_end(
    trace: Trace, steps: pl.DataFrame, host_work: pl.DataFrame
) -> pl.DataFrame:
    """Returns steps, those that outlast the recorder cut when it, and all recorded work, ended."""
    stopped = recorder_end(trace)
    if stopped is None:
        return steps
    work = [part for part in (host_work, slices_on(trace, "device")) if part.height]
    last = max([stopped, *map(_last_slice_end_ns, work)])
    tolerated = last + (pl.col("end") - pl.col("start")) * _MAX_SHARE_OF_STEP_AFTER_RECORDER
    is_cut = (pl.col("start") < last) & (pl.col("end") > tolerated)
    return steps.with_columns(
        end=pl.when(is_cut).then(last).otherwise("end"),
        cut=pl.when(is_cut).then(pl.lit("the recording ended within it")).otherwise("cut"),
    )


def _parsed_step_numbers(texts: pl.Series, parse: Callable[[str], int | None]) -> pl.Series:
    return pl.Series([parse(text) for text in texts.to_list()], dtype=pl.Int64)


def _outermost_steps(steps: pl.DataFrame) -> pl.DataFrame:
    """Returns the steps that lie inside no other step; drops a step that encloses all others."""
    zeros = np.zeros(steps.height, np.int64)
    depth = nest_slices(zeros, steps["start"].to_numpy(), steps["end"].to_numpy(), zeros).depth
    several = np.flatnonzero(np.bincount(depth) > 1)
    return steps.filter(pl.Series(depth == (several[0] if several.size else 0)))


def _steps_between_optimizer_steps(host: pl.DataFrame) -> pl.DataFrame | None:
    """Returns steps from the end of one optimizer step to the end of the next.

    The first began before the recording. A single optimizer step gives no step, because its begin
    is unknown. After the last one follows a step that had not ended.
    """
    marks = filter_by_name(host, names.is_optimizer_step)
    if not marks.height:
        return None
    marks = _optimizer_marks_of_busiest_track(marks).sort("start")
    first = marks["name"].cast(pl.String)[0]
    marks = marks.filter(pl.col("name").cast(pl.String) == first)
    if marks.height < _MIN_OPTIMIZER_STEPS:
        return None
    ends = (marks["start"] + marks["duration"]).to_numpy()
    ends = np.maximum.accumulate(ends)
    last = _last_slice_end_ns(host)
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


_MIN_OPTIMIZER_STEPS: Final = 2


def _optimizer_marks_of_busiest_track(marks: pl.DataFrame) -> pl.DataFrame:
    """Returns the optimizer steps of the track that has the most of them; of equals the longest."""
    tracks = marks.group_by("track").agg(pl.len(), pl.col("duration").sum())
    tracks = tracks.sort("len", "duration", "track", descending=[True, True, False])
    return marks.filter(pl.col("track") == tracks["track"][0])
