"""Lanes: where slices are drawn so that none hides another.

A slice lies as deep in its track as the slices around it, as `slices` tells. Slices of one depth
that overlap nevertheless (kernels of one stream, crossing slices of a thread) are put side by side:
each on a lane that is free when it begins. A track has as many lanes as slices are open at once.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime.arrays import Ints

FOREVER: Final = 2**61
"""No end in ns is later (73 years): it fits 64 bits when it is widened to a pixel as long."""

_ENDS, _EMPTY, _BEGINS = 0, 1, 2
"""What comes first of one instant: ends free their lanes, then what is empty, then begins."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """Intervals on m lanes; the n of them are ordered by lane, and apart and in order on a lane."""

    track: Ints
    """The track of each lane, ascending, shape (m,)."""
    row: Ints
    """Which of its track's lanes each is, from 0, the topmost, shape (m,)."""
    bounds: Ints
    """Where each lane's intervals begin, and where the last's end, shape (m + 1,)."""
    start: Ints
    """Begin of each interval in ns, shape (n,)."""
    before: Ints
    """Time covered by all intervals before each, and by all, in ns, shape (n + 1,)."""
    place: NDArray[np.uint32]
    """The row of each interval in the table that it comes from, shape (n,)."""

    def covered(self, low: Ints, high: Ints) -> Ints:
        """Time covered by the intervals from `low` to before `high`, in ns."""
        return self.before[high] - self.before[low]

    def end(self, at: Ints) -> Ints:
        """End of each of these intervals, in ns."""
        return self.start[at] + self.covered(at, at + 1)

    def lane_of(self, at: Ints) -> Ints:
        """The lane that each of these intervals lies on."""
        return np.asarray(np.searchsorted(self.bounds, at, side="right") - 1, np.int64)


def lay_out(
    track: NDArray[np.integer], depth: NDArray[np.integer], start: Ints, end: Ints
) -> Lanes:
    """Give every interval a lane.

    Args:
        track: The track of each interval, shape (n,).
        depth: How many intervals of its track are around each, shape (n,).
        start: Begin of each in ns, in any order, shape (n,).
        end: End of each in ns, not before its start, shape (n,).
    """
    place = _by_level(track, depth)
    tracks, depths = track[place], depth[place]
    opens = np.ones(place.size, bool)
    opens[1:] = (tracks[1:] != tracks[:-1]) | (depths[1:] != depths[:-1])
    start, end = start[place], end[place]
    overlaps = ~opens[1:] & (start[1:] < end[:-1])
    if overlaps.any():
        _spread(place, start, end, opens, overlaps)
    first = np.flatnonzero(opens)
    on = track[place[first]].astype(np.int64)
    lane = np.arange(first.size)
    return Lanes(
        track=on,
        row=lane - np.searchsorted(on, on),
        bounds=np.append(first, place.size),
        start=start,
        before=np.append(0, np.cumsum(end - start)),
        place=place.astype(np.uint32),
    )


def _by_level(track: NDArray[np.integer], depth: NDArray[np.integer]) -> Ints:
    """The order by track, then depth, then as given; numpy sorts 16 bits by counting."""
    order = np.argsort(depth, kind="stable")
    if track.size and track.max() < 2**16:
        track = track.astype(np.uint16)
    return np.asarray(order[np.argsort(track[order], kind="stable")], np.int64)


def _spread(
    place: Ints,
    start: Ints,
    end: Ints,
    opens: NDArray[np.bool_],
    overlaps: NDArray[np.bool_],
) -> None:
    """Split, in place, the lanes on which intervals overlap."""
    bounds = np.append(np.flatnonzero(opens), place.size)
    crowded = np.unique(np.searchsorted(bounds, np.flatnonzero(overlaps) + 1, side="right") - 1)
    for lane in crowded:
        part = slice(int(bounds[lane]), int(bounds[lane + 1]))
        order = np.lexsort((end[part], start[part]))
        beside = side_by_side(start[part][order], end[part][order])
        split = np.argsort(beside, kind="stable")
        order = order[split]
        for column in (place, start, end):
            column[part] = column[part][order]
        opens[part] = np.diff(beside[split], prepend=-1) != 0


def side_by_side(start: Ints, end: Ints) -> Ints:
    """For each interval a lane, from 0, on which none overlaps another; no lane more than needed.

    The intervals are ordered by start, then end. Where all are over, lane 0 is the next. Until then
    an interval takes the lane that was freed last: begins and ends match as brackets do, so that
    all are matched at once.

    >>> side_by_side(np.array([0, 3, 5, 9]), np.array([4, 6, 8, 12]))
    array([0, 1, 0, 0])
    """
    count = start.size
    reach = np.maximum.accumulate(end)
    stretch = np.cumsum(np.append(True, start[1:] >= reach[:-1])[:count])
    interval, frees = _in_time(start, end, stretch)
    others = np.cumsum(np.where(frees, -1, 1)) - ~frees  # open besides the one that begins or ends
    # With so many others open it is the same place on the pile of free lanes that is taken or put.
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


def _in_time(start: Ints, end: Ints, stretch: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The interval of each begin and end in order of time, and whether it is an end."""
    count = start.size
    interval = np.tile(np.arange(count), 2)
    frees = np.arange(2 * count) >= count
    empty = (start == end)[interval]
    moment = np.where(empty, _EMPTY, np.where(frees, _ENDS, _BEGINS))
    # Of one instant: empty ones in turn; of ends that of the earliest last, as it lies higher.
    in_turn = np.where(empty, interval, np.where(frees, -interval, 0))
    keys = (frees, in_turn, moment, np.append(start, end), stretch[interval])
    order = np.lexsort(keys)
    return interval[order], frees[order]
