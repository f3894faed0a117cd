"""Finds the steps of a program by its annotations that repeat.

A program's own annotations mark its steps if, on one thread, they recur one after the other and
cover most of the thread's work. Several that alternate (forward, backward, update) mark them
together. The decision is by position in time; names only distinguish numbered rounds from numbered
layers.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import device_work
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import clip, length
from selftime.nesting import nest_slices
from selftime.trace import Trace

_MIN_NUMBERED_STEP_MARKS: Final = 2
"""Smallest number of annotations that count as steps if the numbers in their names increase."""
_MIN_UNNUMBERED_STEP_MARKS: Final = 3
"""Smallest number of annotations that count as steps if their names have no increasing numbers."""
_MIN_SHARE_COVERED_BY_STEPS: Final = 0.5
"""Smallest share (0 to 1) of a thread's work that steps must cover, and of the steps that
annotations must cover.
"""
_MIN_SLICE_SHARE_OF_STEP_THREAD: Final = 0.1
"""Smallest number of slices of a thread with steps, as a share (0 to 1) of the busiest thread's
number.
"""


def steps_marked_on_device(trace: Trace, last_host_end: int | None) -> pl.DataFrame | None:
    """Returns steps from the profiler's step slices on the device; None if there are none.

    The last ends when the host did its last work, `last_host_end` (ns), or with its own mark.
    Columns: number, start, end (ns), cut, mark, track (null: it is on no host). None without such
    marks, or if their numbers do not increase, as may happen with ROCm.
    """
    marks = filter_by_name(
        slices_on(trace, "device annotation"),
        lambda name: names.profiler_step_number(name) is not None,
    ).filter(pl.col("duration").is_not_null())
    if not marks.height:
        return None
    marks = _marks_of_fullest_stream(marks).sort("start")
    text = marks["name"].cast(pl.String).to_list()
    number = np.array([names.profiler_step_number(name) for name in text], np.int64)
    if (np.diff(number) <= 0).any():
        return None
    begins, closing = marks["start"].to_numpy(), _end_times_of_marks_ns(marks)
    work = device_work(trace)
    inside = np.searchsorted(begins, work["start"].to_numpy(), side="right") - 1
    launched = pl.coalesce(work["launched"], work["start"], eager=True).to_numpy()
    start = begins.copy()
    held = (inside >= 0) & (work["start"].to_numpy() < closing[inside])
    np.minimum.at(start, inside[held], launched[held])
    start = np.maximum.accumulate(start)
    end = np.append(start[1:], max(int(closing[-1]), last_host_end or 0))
    steps = {"number": number, "start": start, "end": end, "mark": text}
    return pl.DataFrame(steps).with_columns(cut=None, track=None).filter(end > start)


def _end_times_of_marks_ns(marks: pl.DataFrame) -> np.ndarray:
    return (marks["start"] + marks["duration"]).to_numpy()


def _marks_of_fullest_stream(marks: pl.DataFrame) -> pl.DataFrame:
    """Returns the step slices of the stream that has the most of them."""
    tracks = marks.group_by("track").len().sort("len", "track", descending=[True, False])
    return marks.filter(pl.col("track") == tracks["track"][0])


def marked_steps(host: pl.DataFrame) -> pl.DataFrame | None:
    """Returns the steps that repeating annotations mark, times in ns; None if there are none.

    Each lasts from the end of one mark to the end of the next; None without such marks. `cut`
    describes what is missing of a step, or is null. The first step begins with its mark, because
    earlier work may not belong to it.
    """
    sizes = host.group_by("track").len()
    working = sizes.filter(pl.col("len") >= _MIN_SLICE_SHARE_OF_STEP_THREAD * pl.col("len").max())[
        "track"
    ]
    marks = _possible_step_marks(host).filter(pl.col("track").is_in(working.implode()))
    found = [
        steps
        for (track,), own in marks.group_by("track", maintain_order=True)
        if (steps := _steps_on_track(own, host.filter(pl.col("track") == track))) is not None
    ]
    return max(found, key=_time_covered_by_steps_ns, default=None)


def _time_covered_by_steps_ns(steps: pl.DataFrame) -> int:
    return int((steps["end"] - steps["start"]).sum())


def _possible_step_marks(host_slices: pl.DataFrame) -> pl.DataFrame:
    """Returns annotations that may mark steps, with name stem and number, in order of time."""
    told = host_slices.select("name", "category").unique().cast(pl.String)
    rows = [
        (name, category, names.loop_annotation_family(name), names.iteration_number(name))
        for name, category in told.rows()
        if _is_user_annotation(name, category)
    ]
    kinds = {"name": pl.String, "category": pl.String, "family": pl.String, "number": pl.Int64}
    read = pl.DataFrame(rows, schema=kinds, orient="row").drop_nulls("family")
    chosen = host_slices.filter(pl.col("name").is_in(read["name"].unique().implode()))
    return (
        chosen.select("track", "start", "duration", pl.col("name", "category").cast(pl.String))
        .join(read, on=["name", "category"])
        .with_columns(end=pl.col("start") + pl.col("duration"))
        .sort("start", pl.col("duration").neg())
    )


def _is_user_annotation(name: str, category: str) -> bool:
    """Returns whether a slice is an annotation, also as traces before 2022 categorise them."""
    if category in names.ANNOTATION_CATEGORIES:
        return True
    return category in names.OPERATOR_CATEGORIES and "::" not in name and names.has_step_word(name)


def _steps_on_track(marks: pl.DataFrame, host: pl.DataFrame) -> pl.DataFrame | None:
    """Returns the steps marked by the outermost repeating annotations of one thread."""
    start, end = marks["start"].to_numpy(), marks["end"].to_numpy()
    zeros = np.zeros(start.size, np.int64)
    depth = pl.Series(nest_slices(zeros, start, end, zeros).depth)
    worded = pl.Series(list(map(names.has_step_word, marks["name"])), dtype=pl.Boolean)
    busy = covered_time(host.filter(pl.col("depth") == 0))
    levels = [marks.filter(depth == level) for level in range(int(depth.max() or 0) + 1)]  # type: ignore[arg-type]  # integers
    words = [worded.filter(depth == level) for level in range(len(levels))]
    for chosen in (*map(pl.DataFrame.filter, levels, words), *levels):
        steps = _steps_of_alternating_marks(chosen)
        if steps is None:
            continue
        low, high = int(steps["start"][0]), int(steps["end"][-1])
        inside = covered_time(chosen)
        held = length(clip(inside, low, high)) >= _MIN_SHARE_COVERED_BY_STEPS * (high - low)
        if held and length(clip(busy, low, high)) >= _MIN_SHARE_COVERED_BY_STEPS * length(busy):
            return steps
    return None


def _steps_of_alternating_marks(marks: pl.DataFrame) -> pl.DataFrame | None:
    """Returns steps from the longest repeating annotation and annotations alternating with it."""
    families = marks.group_by("family", maintain_order=True).agg(
        pl.len(), pl.col("duration").sum(), rising=_is_increasing_number(pl.col("number"))
    )
    least = pl.when("rising").then(_MIN_NUMBERED_STEP_MARKS).otherwise(_MIN_UNNUMBERED_STEP_MARKS)
    enough = families.filter(pl.col("len") >= least)
    if not enough.height:
        return None
    longest = enough.sort("duration", descending=True, maintain_order=True).row(0, named=True)
    main = marks.filter(pl.col("family") == longest["family"])
    alike = families.filter((pl.col("len").cast(pl.Int64) - main.height).abs() <= 1)
    turning = [
        family for family in alike["family"] if _family_occurs_once_per_mark(marks, family, main)
    ]
    turns = marks.filter(pl.col("family").is_in(turning))
    begins = turns.filter(pl.col("family") == turns["family"][0])["start"].to_numpy()
    round_of = np.searchsorted(begins, turns["start"].to_numpy(), side="right") - 1
    ends = np.zeros(begins.size, np.int64)
    np.maximum.at(ends, round_of, turns["end"].to_numpy())
    cut = pl.Series("cut", [None] * begins.size, dtype=pl.String)
    if (round_of == begins.size - 1).sum() < len(turning):
        cut[-1] = "the recording ended within it"
    told = np.minimum(np.searchsorted(main["start"].to_numpy(), begins), main.height - 1)
    number = main["number"].gather(told)
    counted = longest["rising"] and bool(number.is_unique().all())
    return pl.DataFrame(
        {
            "number": number if counted else np.arange(begins.size),
            "start": np.append(begins[:1], ends[:-1]),
            "end": ends,
            "cut": cut,
            "mark": main["name"].gather(told),
            "track": main["track"].gather(told),
        }
    )


def _is_increasing_number(number: pl.Expr) -> pl.Expr:
    return number.is_not_null().all() & (number.diff() > 0).fill_null(value=True).all()


def _family_occurs_once_per_mark(
    marks: pl.DataFrame, family: str, main_marks: pl.DataFrame
) -> bool:
    """Returns whether annotations of a name stem occur once per main annotation, ends excepted."""
    begins = main_marks["start"].to_numpy()
    own = marks.filter(pl.col("family") == family)["start"].to_numpy()
    rounds = np.bincount(np.searchsorted(begins, own, side="right"), minlength=begins.size + 1)
    return bool((rounds[1:-1] == 1).all() and (rounds <= 1).all())
