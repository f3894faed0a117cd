"""Assigns slices to lanes (timeline rows), and finds the slices visible in a time window."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.timeline.downsampling import (
    LongestIntervalInRange,
    TimelineBins,
    TimelineWindow,
    visible_timeline_bins,
)
from selftime.analysis.timeline.lanes import (
    LATEST_TIMELINE_TIME_NS,
    TimelineLanes,
    assign_intervals_to_lanes,
)
from selftime.array_types import Ints
from selftime.trace import Trace


@cached_per_trace
def instant_mark_lanes(trace: Trace) -> TimelineLanes:
    """Returns a trace's instant events on timeline lanes, one lane per track."""
    track, time = trace.instants["track"].to_numpy(), trace.instants["time"].to_numpy()
    return assign_intervals_to_lanes(track, np.zeros_like(track), time, time)


def visible_instant_marks(
    trace: Trace, window: TimelineWindow, lane_flags: NDArray[np.bool_]
) -> pl.DataFrame:
    """Returns the instant events that a window shows on the selected lanes, one row per pixel.

    Columns: track, start (of the first), duration (to the last), count, name and category of the
    first.
    """
    lanes = instant_mark_lanes(trace)
    seen = visible_timeline_bins(lanes, window, lane_flags)
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
    """All slices of a trace on timeline lanes, with look-ups for index ranges of slices."""

    lanes: TimelineLanes
    lane: NDArray[np.int32]
    """The number of each slice's lane; the index is the slice id."""
    longest: LongestIntervalInRange
    categories: "MainCategoryInRange"


@cached_per_trace
def slice_lanes(trace: Trace) -> SliceLanes:
    """Returns the slices of a trace on lanes; a slice of unknown end has zero length there."""
    return lanes_of_slices(trace.slices, trace.slices["depth"].to_numpy())


def lanes_of_slices(slices: pl.DataFrame, depth: NDArray[np.integer]) -> SliceLanes:
    """Returns slices on the lanes of their depth and track.

    Columns: track, start, duration (null if unknown) and category.
    """
    start = slices["start"].to_numpy()
    length = slices["duration"].fill_null(0).to_numpy()
    end = start + np.clip(length, 0, np.maximum(LATEST_TIMELINE_TIME_NS - start, 0))
    lanes = assign_intervals_to_lanes(slices["track"].to_numpy(), depth, start, end)
    lane = np.empty(slices.height, np.int32)
    lane[lanes.place] = np.repeat(np.arange(lanes.row.size), np.diff(lanes.bounds))
    return SliceLanes(
        lanes, lane, LongestIntervalInRange(lanes), MainCategoryInRange(slices["category"], lanes)
    )


@cached_per_trace
def slice_lanes_by_name(trace: Trace) -> SliceLanes:
    """Returns the slices on lanes where each name of a stream has its own, that of most time first.

    Slices of other tracks lie as in `slice_lanes`.
    """
    slices = trace.slices
    on_device = trace.tracks.filter(pl.col("kind").cast(pl.String) == "device")["id"]
    is_work = slices["track"].is_in(on_device.implode())
    order = (
        slices.select("id", "track", "name", "duration")
        .filter(is_work)
        .group_by("track", "name", maintain_order=True)
        .agg(pl.col("duration").fill_null(0).sum())
        .sort("track", "duration", descending=[False, True], maintain_order=True)
        .with_columns(rank=pl.int_range(pl.len()).over("track"))
    )
    rank = slices.select("track", "name").join(
        order, on=["track", "name"], how="left", maintain_order="left", nulls_equal=True
    )["rank"]
    depth = pl.select(pl.when(is_work).then(rank).otherwise(slices["depth"].cast(pl.Int64)))
    return lanes_of_slices(slices, depth.to_series().to_numpy())


class MainCategoryInRange:
    """Finds the category that has the most time in a range of slices."""

    __slots__ = ("_before", "_on", "_only", "_place", "texts")

    def __init__(self, category: pl.Series, lanes: TimelineLanes) -> None:
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
        """For each category, the indexes of its intervals in order, on lanes with several
        categories.
        """
        self._before = [
            np.append(0, np.cumsum(lanes.total_length(place, place + 1))) for place in self._place
        ]
        """For each category, the total length in ns of its intervals before each of `_place`."""

    def main_category_of_bins(self, bins: TimelineBins, lane: NDArray[np.integer]) -> Ints:
        """Returns the category with the most time in each bin, as an index in `texts`."""
        best: Ints = self._only[lane]
        most = np.full(best.size, -1, np.int64)
        for code, (place, before) in enumerate(zip(self._place, self._before, strict=True)):
            asked = np.flatnonzero(self._on[lane, code])
            low, high = (np.searchsorted(place, edge[asked]) for edge in bins)
            time = np.where(high > low, before[high] - before[low], -1)
            more = time > most[asked]
            best[asked[more]], most[asked[more]] = code, time[more]
        return best


def visible_slices(
    slices: pl.DataFrame, index: SliceLanes, window: TimelineWindow, lane_flags: NDArray[np.bool_]
) -> pl.DataFrame:
    """Returns the slices that a time window shows on the selected lanes, one row per drawn bar.

    The table of slices is that of the lanes, with the columns name, category, duration and self.

    Columns: kind (slice or merged), track, row, start, duration, self (of a single slice), busy,
    count, name, category, id.
    """
    lanes = index.lanes
    seen = visible_timeline_bins(lanes, window, lane_flags)
    count = seen.high - seen.low
    is_merged = count > 1
    many = TimelineBins(seen.low[is_merged], seen.high[is_merged])
    shown = seen.low.copy()
    shown[is_merged] = index.longest.longest_of_bins(many)
    place = lanes.place[shown]
    lane = index.lane[place]
    start = lanes.start[seen.low]
    merged = pl.Series(is_merged)
    category = slices["category"].gather(place)
    of_many = index.categories.texts.gather(
        index.categories.main_category_of_bins(many, lane[is_merged])
    )
    return (
        pl.DataFrame(
            {
                "kind": np.where(is_merged, "merged", "slice"),
                "track": lanes.track[lane],
                "row": lanes.row[lane],
                "start": start,
                "duration": lanes.interval_ends(seen.high - 1) - start,
                "busy": lanes.total_length(seen.low, seen.high),
                "count": count,
                "name": slices["name"].gather(place),
                "category": category.scatter(np.flatnonzero(is_merged), of_many),
                "id": place,
                "self": slices["self"].gather(place),
                "known": slices["duration"].gather(place).is_not_null(),
            }
        )
        .with_columns(
            pl.when(merged | pl.col("known")).then("duration").alias("duration"),
            pl.when(~merged).then("id").alias("id"),
            pl.when(~merged).then("self").alias("self"),
        )
        .drop("known")
    )
