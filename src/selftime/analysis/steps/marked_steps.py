"""Steps told by annotations that repeat as steps do.

A program's own marks tell its steps if, on one thread, they come again and again, one after the
other, and cover most of what the thread did. Several that take turns (forward, backward, update)
tell them together. What decides is how they lie; their words only tell numbered rounds apart from
numbered layers.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import clip, length
from selftime.nesting import nest
from selftime.trace import Trace

_LEAST_RISING: Final = 2
"""So many marks are steps if their names count upwards."""
_LEAST_EQUAL: Final = 3
"""So many are needed if they do not: two equal ranges may be anything."""
_MOST: Final = 0.5
"""Steps hold at least this share of what their thread did; and marks, of the steps."""
_LEAST_WORK: Final = 0.1
"""A thread with less than this share of the slices of the busiest one does not run the program."""


def device_steps(trace: Trace, last: int | None) -> pl.DataFrame | None:
    """Steps from the first launch within each mark to that of the next: the columns of a step.

    The last ends when the host did its last, `last` (ns), or with its own mark. Columns: number,
    start, end (ns), cut, mark, track (null: it is no host's). None if there are no such marks, or
    their numbers do not rise from one to the next, as those of ROCm may not.
    """
    marks = filter_by_name(
        slices_on(trace, "device annotation"), lambda name: names.step_number(name) is not None
    ).filter(pl.col("duration").is_not_null())
    if not marks.height:
        return None
    marks = _fullest_track(marks).sort("start")
    text = marks["name"].cast(pl.String).to_list()
    number = np.array([names.step_number(name) for name in text], np.int64)
    if (np.diff(number) <= 0).any():
        return None
    begins, closing = marks["start"].to_numpy(), _ends(marks)
    work = device_work(trace)
    inside = np.searchsorted(begins, work["start"].to_numpy(), side="right") - 1
    launched = pl.coalesce(work["launched"], work["start"], eager=True).to_numpy()
    start = begins.copy()
    held = (inside >= 0) & (work["start"].to_numpy() < closing[inside])
    np.minimum.at(start, inside[held], launched[held])
    start = np.maximum.accumulate(start)
    end = np.append(start[1:], max(int(closing[-1]), last or 0))
    steps = {"number": number, "start": start, "end": end, "mark": text}
    return pl.DataFrame(steps).with_columns(cut=None, track=None).filter(end > start)


def _ends(marks: pl.DataFrame) -> np.ndarray:
    return (marks["start"] + marks["duration"]).to_numpy()


def _fullest_track(marks: pl.DataFrame) -> pl.DataFrame:
    """The marks of the stream that has most of them."""
    tracks = marks.group_by("track").len().sort("len", "track", descending=[True, False])
    return marks.filter(pl.col("track") == tracks["track"][0])


def marked_steps(host: pl.DataFrame) -> pl.DataFrame | None:
    """Steps between the ends of marks: columns number, start, end (ns), cut, mark, track.

    None if no marks lie so. `cut` says what is missing of a step, or is null.
    The first begins with its mark: what the program did before it is not known to belong to it.
    """
    sizes = host.group_by("track").len()
    working = sizes.filter(pl.col("len") >= _LEAST_WORK * pl.col("len").max())["track"]
    marks = _marks(host).filter(pl.col("track").is_in(working.implode()))
    found = [
        steps
        for (track,), own in marks.group_by("track", maintain_order=True)
        if (steps := _on_track(own, host.filter(pl.col("track") == track))) is not None
    ]
    return max(found, key=_time_covered, default=None)


def _time_covered(steps: pl.DataFrame) -> int:
    return int((steps["end"] - steps["start"]).sum())


def _marks(host: pl.DataFrame) -> pl.DataFrame:
    """Annotations that may mark steps, with their family and number, in order of time."""
    told = host.select("name", "category").unique().cast(pl.String)
    rows = [
        (name, category, names.annotation_family(name), names.annotation_number(name))
        for name, category in told.rows()
        if _is_annotation(name, category)
    ]
    kinds = {"name": pl.String, "category": pl.String, "family": pl.String, "number": pl.Int64}
    read = pl.DataFrame(rows, schema=kinds, orient="row").drop_nulls("family")
    chosen = host.filter(pl.col("name").is_in(read["name"].unique().implode()))
    return (
        chosen.select("track", "start", "duration", pl.col("name", "category").cast(pl.String))
        .join(read, on=["name", "category"])
        .with_columns(end=pl.col("start") + pl.col("duration"))
        .sort("start", pl.col("duration").neg())
    )


def _is_annotation(name: str, category: str) -> bool:
    """Whether it is the program's own range; before 2022 these had the category of operators."""
    if category in names.ANNOTATIONS:
        return True
    return category in names.OPERATORS and "::" not in name and names.has_step_word(name)


def _on_track(marks: pl.DataFrame, host: pl.DataFrame) -> pl.DataFrame | None:
    """The steps that the outermost repeating marks of one thread tell; those with words first."""
    start, end = marks["start"].to_numpy(), marks["end"].to_numpy()
    zeros = np.zeros(start.size, np.int64)
    depth = pl.Series(nest(zeros, start, end, zeros).depth)
    worded = pl.Series(list(map(names.has_step_word, marks["name"])), dtype=pl.Boolean)
    busy = covered_time(host.filter(pl.col("depth") == 0))
    levels = [marks.filter(depth == level) for level in range(int(depth.max() or 0) + 1)]  # type: ignore[arg-type]  # integers
    words = [worded.filter(depth == level) for level in range(len(levels))]
    for chosen in (*map(pl.DataFrame.filter, levels, words), *levels):
        steps = _taking_turns(chosen)
        if steps is None:
            continue
        low, high = int(steps["start"][0]), int(steps["end"][-1])
        inside = covered_time(chosen)
        held = length(clip(inside, low, high)) >= _MOST * (high - low)
        if held and length(clip(busy, low, high)) >= _MOST * length(busy):
            return steps
    return None


def _taking_turns(marks: pl.DataFrame) -> pl.DataFrame | None:
    """Steps from marks of one level: those of the longest family, and what takes turns with it."""
    families = marks.group_by("family", maintain_order=True).agg(
        pl.len(), pl.col("duration").sum(), rising=_rises(pl.col("number"))
    )
    least = pl.when("rising").then(_LEAST_RISING).otherwise(_LEAST_EQUAL)
    enough = families.filter(pl.col("len") >= least)
    if not enough.height:
        return None
    longest = enough.sort("duration", descending=True, maintain_order=True).row(0, named=True)
    main = marks.filter(pl.col("family") == longest["family"])
    alike = families.filter((pl.col("len").cast(pl.Int64) - main.height).abs() <= 1)
    turning = [family for family in alike["family"] if _alternates(marks, family, main)]
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


def _rises(number: pl.Expr) -> pl.Expr:
    return number.is_not_null().all() & (number.diff() > 0).fill_null(value=True).all()


def _alternates(marks: pl.DataFrame, family: str, main: pl.DataFrame) -> bool:
    """Whether a family comes once in each round of the main one; at the ends it may be missing."""
    begins = main["start"].to_numpy()
    own = marks.filter(pl.col("family") == family)["start"].to_numpy()
    rounds = np.bincount(np.searchsorted(begins, own, side="right"), minlength=begins.size + 1)
    return bool((rounds[1:-1] == 1).all() and (rounds <= 1).all())
