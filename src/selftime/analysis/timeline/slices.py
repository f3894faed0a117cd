"""The slices of a trace on lanes, and what of them is visible in a window."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.timeline.downsampling import Cells, Longest, Window, cells
from selftime.analysis.timeline.lanes import FOREVER, Lanes, lay_out
from selftime.arrays import Ints
from selftime.trace import Trace


@cached_per_trace
def mark_lanes(trace: Trace) -> Lanes:
    """The marks of a trace, all those of a track on one lane."""
    track, time = trace.instants["track"].to_numpy(), trace.instants["time"].to_numpy()
    return lay_out(track, np.zeros_like(track), time, time)


def visible_marks(trace: Trace, window: Window, chosen: NDArray[np.bool_]) -> pl.DataFrame:
    """What is visible of the marks of the chosen lanes, one row a pixel.

    Columns: track, start (of the first), duration (to the last), count, name and category of the
    first.
    """
    lanes = mark_lanes(trace)
    seen = cells(lanes, window, chosen)
    start = lanes.start[seen.low]
    return trace.instants[lanes.place[seen.low]].select(
        "track",
        "name",
        "category",
        start=pl.Series(start),
        duration=pl.Series(lanes.start[seen.high - 1] - start),
        count=pl.Series(seen.high - seen.low),
    )


@dataclass(frozen=True, slots=True)
class SliceLanes:
    """All slices of a trace on lanes, and what tells of many of them at once."""

    lanes: Lanes
    lane: NDArray[np.int32]
    """The lane of each slice, by its id."""
    longest: Longest
    categories: "Categories"


@cached_per_trace
def slice_lanes(trace: Trace) -> SliceLanes:
    """Lay the slices of a trace out; a slice whose end is unknown has no length here."""
    slices = trace.slices
    start = slices["start"].to_numpy()
    length = slices["duration"].fill_null(0).to_numpy()
    end = start + np.clip(length, 0, np.maximum(FOREVER - start, 0))
    lanes = lay_out(slices["track"].to_numpy(), slices["depth"].to_numpy(), start, end)
    lane = np.empty(slices.height, np.int32)
    lane[lanes.place] = np.repeat(np.arange(lanes.row.size), np.diff(lanes.bounds))
    return SliceLanes(lanes, lane, Longest(lanes), Categories(slices["category"], lanes))


class Categories:
    """Finds the category that takes most of the time of a range of intervals."""

    __slots__ = ("_before", "_on", "_only", "_place", "texts")

    def __init__(self, category: pl.Series, lanes: Lanes) -> None:
        self.texts = category.unique(maintain_order=True)
        known = self.texts.to_physical().to_numpy()
        code_of = np.zeros(int(known.max(initial=0)) + 1, np.uint16)
        code_of[known] = np.arange(known.size)
        code = code_of[category.to_physical().to_numpy()[lanes.place]]
        lane = np.repeat(np.arange(lanes.row.size), np.diff(lanes.bounds))
        self._on = np.zeros((lanes.row.size, max(known.size, 1)), bool)
        self._on[lane, code] = True
        self._only = self._on.argmax(axis=1).astype(np.int64)
        self._on &= self._on.sum(axis=1, keepdims=True) > 1
        is_mixed = np.asarray(self._on.any(axis=1), bool)
        mixed = np.flatnonzero(is_mixed[lane])
        mixed = mixed[np.argsort(code[mixed], kind="stable")]
        edges = np.searchsorted(code[mixed], np.arange(1, known.size))
        self._place = np.split(mixed, edges)
        """Intervals of each category, of lanes that hold several, in order."""
        self._before = [
            np.append(0, np.cumsum(lanes.covered(place, place + 1))) for place in self._place
        ]
        """Time that they cover before each of them."""

    def within(self, these: Cells, lane: NDArray[np.integer]) -> Ints:
        """For each cell the place in `texts` of the category that covers most time."""
        best: Ints = self._only[lane]
        most = np.full(best.size, -1, np.int64)
        for code, (place, before) in enumerate(zip(self._place, self._before, strict=True)):
            asked = np.flatnonzero(self._on[lane, code])
            low, high = (np.searchsorted(place, edge[asked]) for edge in these)
            time = np.where(high > low, before[high] - before[low], -1)
            more = time > most[asked]
            best[asked[more]], most[asked[more]] = code, time[more]
        return best


def visible_slices(trace: Trace, window: Window, chosen: NDArray[np.bool_]) -> pl.DataFrame:
    """What is visible of the chosen lanes, one row a cell.

    Columns: kind (slice or merged), track, row, start, duration, self (of a slice alone), busy,
    count, name, category, id.
    """
    index = slice_lanes(trace)
    lanes = index.lanes
    seen = cells(lanes, window, chosen)
    count = seen.high - seen.low
    is_merged = count > 1
    many = Cells(seen.low[is_merged], seen.high[is_merged])
    shown = seen.low.copy()
    shown[is_merged] = index.longest.within(many)
    place = lanes.place[shown]
    lane = index.lane[place]
    start = lanes.start[seen.low]
    merged = pl.Series(is_merged)
    category = trace.slices["category"].gather(place)
    of_many = index.categories.texts.gather(index.categories.within(many, lane[is_merged]))
    return (
        pl.DataFrame(
            {
                "kind": np.where(is_merged, "merged", "slice"),
                "track": lanes.track[lane],
                "row": lanes.row[lane],
                "start": start,
                "duration": lanes.end(seen.high - 1) - start,
                "busy": lanes.covered(seen.low, seen.high),
                "count": count,
                "name": trace.slices["name"].gather(place),
                "category": category.scatter(np.flatnonzero(is_merged), of_many),
                "id": place,
                "self": trace.slices["self"].gather(place),
                "known": trace.slices["duration"].gather(place).is_not_null(),
            }
        )
        .with_columns(
            pl.when(merged | pl.col("known")).then("duration").alias("duration"),
            pl.when(~merged).then("id").alias("id"),
            pl.when(~merged).then("self").alias("self"),
        )
        .drop("known")
    )
