"""Assigns slices to lanes: the rows of the timeline, in which no two slices overlap.

A slice is drawn at its depth in its track. Slices of one depth that overlap nevertheless (kernels
of one stream, crossing slices of a thread) are drawn in parallel lanes: each in a lane that is free
when it begins. A track has as many lanes as slices are open at once.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime.array_types import Ints

LATEST_TIMELINE_TIME_NS: Final = 2**61
"""Latest end of a slice in ns (73 years); a pixel of that length still fits a 64-bit integer."""

_SORT_KEY_OF_INTERVAL_ENDS, _SORT_KEY_OF_EMPTY_INTERVALS, _SORT_KEY_OF_INTERVAL_BEGINS = 0, 1, 2
"""Order of events at one instant: ends, which free lanes, then empty intervals, then begins."""


@dataclass(frozen=True, slots=True)
class TimelineLanes:
    """Intervals assigned to lanes, the rows of the timeline; a lane's are sorted and disjoint."""

    track: Ints
    """The track of each lane, ascending, shape (m,)."""
    row: Ints
    """The index of each lane in its track, from 0 at the top, shape (m,)."""
    bounds: Ints
    """The index of each lane's first interval; the last element is the number of intervals; shape
    (m + 1,).
    """
    start: Ints
    """Begin of each interval in ns, shape (n,)."""
    before: Ints
    """Summed length in ns of the intervals before each interval; the last element is the sum of
    all; shape (n + 1,).
    """
    place: NDArray[np.uint32]
    """The row of each interval in the table of slices, marks or samples that it comes from, shape
    (n,).
    """

    def total_length(self, first: Ints, stop: Ints) -> Ints:
        """Returns the total length of the intervals from `first` to before `stop`, in ns."""
        return self.before[stop] - self.before[first]

    def interval_ends(self, indexes: Ints) -> Ints:
        """Returns the ends of the intervals with the given indexes, in ns."""
        return self.start[indexes] + self.total_length(indexes, indexes + 1)

    def lane_of_intervals(self, indexes: Ints) -> Ints:
        """Returns the lane number of each interval with the given indexes."""
        return np.asarray(np.searchsorted(self.bounds, indexes, side="right") - 1, np.int64)


def assign_intervals_to_lanes(
    track: NDArray[np.integer], depth: NDArray[np.integer], start: Ints, end: Ints
) -> TimelineLanes:
    """Returns the intervals assigned to lanes (timeline rows), so that none overlap on a lane.

    Args:
        track: The track of each interval, shape (n,).
        depth: The number of enclosing intervals of its track, shape (n,).
        start: Begin of each in ns, in any order, shape (n,).
        end: End of each in ns, not before its start, shape (n,).
    """
    place = _order_by_track_and_depth(track, depth)
    tracks, depths = track[place], depth[place]
    opens = np.ones(place.size, bool)
    opens[1:] = (tracks[1:] != tracks[:-1]) | (depths[1:] != depths[:-1])
    start, end = start[place], end[place]
    overlaps = ~opens[1:] & (start[1:] < end[:-1])
    if overlaps.any():
        _split_overlapping_lanes(place, start, end, opens, overlaps)
    first = np.flatnonzero(opens)
    on = track[place[first]].astype(np.int64)
    lane = np.arange(first.size)
    return TimelineLanes(
        track=on,
        row=lane - np.searchsorted(on, on),
        bounds=np.append(first, place.size),
        start=start,
        before=np.append(0, np.cumsum(end - start)),
        place=place.astype(np.uint32),
    )


def _order_by_track_and_depth(track: NDArray[np.integer], depth: NDArray[np.integer]) -> Ints:
    """Returns the indexes that sort intervals by track, then depth, then position."""
    order = np.argsort(depth, kind="stable")
    if track.size and track.max() < 2**16:
        track = track.astype(np.uint16)
    return np.asarray(order[np.argsort(track[order], kind="stable")], np.int64)


def _split_overlapping_lanes(
    place: Ints,
    start: Ints,
    end: Ints,
    opens: NDArray[np.bool_],
    overlaps: NDArray[np.bool_],
) -> None:
    """Splits, in place, each lane on which intervals overlap into several lanes."""
    bounds = np.append(np.flatnonzero(opens), place.size)
    crowded = np.unique(np.searchsorted(bounds, np.flatnonzero(overlaps) + 1, side="right") - 1)
    for lane in crowded:
        part = slice(int(bounds[lane]), int(bounds[lane + 1]))
        order = np.lexsort((end[part], start[part]))
        beside = lanes_without_overlap(start[part][order], end[part][order])
        split = np.argsort(beside, kind="stable")
        order = order[split]
        for column in (place, start, end):
            column[part] = column[part][order]
        opens[part] = np.diff(beside[split], prepend=-1) != 0


def lanes_without_overlap(start: Ints, end: Ints) -> Ints:
    """Returns a lane number from 0 for each interval; intervals on a lane never overlap.

    The intervals are ordered by start, then end. Where no interval is open, the next takes lane 0.
    Else an interval takes the lane that was freed last: begins and ends match as brackets do, so
    all are matched at once.

    >>> lanes_without_overlap(np.array([0, 3, 5, 9]), np.array([4, 6, 8, 12]))
    array([0, 1, 0, 0])
    """
    count = start.size
    reach = np.maximum.accumulate(end)
    stretch = np.cumsum(np.append(True, start[1:] >= reach[:-1])[:count])
    interval, frees = _interval_begins_and_ends(start, end, stretch)
    others = np.cumsum(np.where(frees, -1, 1)) - ~frees  # open, without the one that begins or ends
    # With this many others open, the same position on the stack of free lanes is popped or pushed.
    pile = np.lexsort((others, stretch[interval]))
    interval, frees, others = interval[pile], frees[pile], others[pile]
    first = np.append(True, (others[1:] != others[:-1]) | (np.diff(stretch[interval]) != 0))
    first, takes = first[: pile.size] & ~frees, ~frees
    lane = np.zeros(count, np.int64)
    lane[interval[first]] = others[first]
    before = np.arange(count)
    again = np.flatnonzero(takes & ~first)
    before[interval[again]] = interval[again - 1]
    while not np.array_equal(further := before[before], before):
        before = further
    return np.asarray(lane[before])


def _interval_begins_and_ends(
    start: Ints, end: Ints, stretch: Ints
) -> tuple[Ints, NDArray[np.bool_]]:
    """Returns all begins and ends in order of time: the interval's index, and whether it ends."""
    count = start.size
    interval = np.tile(np.arange(count), 2)
    frees = np.arange(2 * count) >= count
    empty = (start == end)[interval]
    moment = np.where(
        empty,
        _SORT_KEY_OF_EMPTY_INTERVALS,
        np.where(frees, _SORT_KEY_OF_INTERVAL_ENDS, _SORT_KEY_OF_INTERVAL_BEGINS),
    )
    # At one instant: empty intervals in turn; the end of the earliest last, as its lane is higher.
    in_turn = np.where(empty, interval, np.where(frees, -interval, 0))
    keys = (frees, in_turn, moment, np.append(start, end), stretch[interval])
    order = np.lexsort(keys)
    return interval[order], frees[order]
