"""Every track nested as if nothing crossed, and mended where something does."""

from itertools import pairwise

import numpy as np

from selftime.arrays import SignedInts as Ints
from selftime.nesting.crossings import BLEED, NONE, Nesting, mend


def nest(track: Ints, start: Ints, end: Ints, rank: Ints, *, bleed: int = BLEED) -> Nesting:
    """Nest every track.

    Args:
        track: The track of each slice, shape (n,).
        start: Begin of each slice in ns, shape (n,).
        end: End of each slice in ns, not before its start, shape (n,).
        rank: Which of two slices of equal times is the outer: the lower, then the earlier given.
        bleed: By how many ns a crossing is rounding, to be clipped.
    """
    order = _outer_first(track, start, end, rank)
    one = _Sorted(start[order], end[order], bleed)
    bounds = np.flatnonzero(np.diff(track[order])) + 1
    for low, high in zip([0, *bounds], [*bounds, order.size], strict=True):
        one.nest_track(int(low), int(high))
    found = Nesting(*(np.empty(order.size, np.int64) for _ in range(5)))
    found.start[order], found.end[order] = one.start, one.end
    found.depth[order], found.self_time[order] = one.depth, one.self_time
    found.parent[order] = np.where(one.parent == NONE, NONE, order[one.parent])
    return found


def _outer_first(track: Ints, start: Ints, end: Ints, rank: Ints) -> Ints:
    """The order by track, start, and of equal starts the longest first, then the lowest rank.

    Slices mostly come in order of start, and few start together: only those are compared further.
    """
    order = np.arange(start.size)
    if start.size and (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
    few = track.size and track.max() <= np.iinfo(np.uint16).max  # sorted by their digits
    on_track = track[order].astype(np.uint16 if few else np.int64)
    order = order[np.argsort(on_track, kind="stable")]
    begun, where = start[order], track[order]
    together = (begun[1:] == begun[:-1]) & (where[1:] == where[:-1])
    if together.any():
        tied = np.flatnonzero(np.append(together, False) | np.append(False, together))
        group = np.cumsum(np.append(True, ~together))[tied]
        among = order[tied]
        order[tied] = among[np.lexsort((among, rank[among], -end[among], group))]
    return order


class _Sorted:
    """The slices of all tracks in order of (track, start, longest first), and what is found."""

    def __init__(self, start: Ints, end: Ints, bleed: int) -> None:
        self.start, self.end, self.bleed = start, end, bleed
        self.parent = np.full(start.size, NONE, np.int64)
        self.depth = np.zeros(start.size, np.int64)
        self.self_time = end - start

    def nest_track(self, low: int, high: int) -> None:
        """Nest one track as if nothing crossed; then mend where slices cross."""
        start, end = self.start[low:high], self.end[low:high]
        depth = open_before(start, end)
        parent = parents_by_depth(depth)
        has = parent != NONE
        crossing = np.zeros(start.size, bool)
        crossing[has] = (end[has] > end[parent[has]]) | (start[has] >= end[parent[has]])
        inside = np.flatnonzero(has & ~crossing)
        children = np.bincount(parent[inside], (end - start)[inside], start.size)
        own = end - start - children.astype(np.int64)
        if crossing.any():
            mend(Nesting(start, end, parent, depth, own), crossing, self.bleed)
        self.depth[low:high], self.self_time[low:high] = depth, own
        self.parent[low:high] = np.where(parent == NONE, NONE, parent + low)


def open_before(start: Ints, end: Ints) -> Ints:
    """How many earlier slices of the track are still open when each begins."""
    places = np.arange(start.size)
    closed = np.searchsorted(np.sort(end), start, side="right")
    # Slices of no length end when they begin: those not before this one are not closed by it.
    empty = end == start
    if not empty.any():
        return np.asarray(places - closed, np.int64)
    upto = np.cumsum(empty)
    last_of_start = np.searchsorted(start, start, side="right") - 1
    return np.asarray(places - (closed - (upto[last_of_start] - upto + empty)), np.int64)


def parents_by_depth(depth: Ints) -> Ints:
    """The last slice before each that lies one level higher; NONE at the root."""
    parent = np.full(depth.size, NONE, np.int64)
    few = depth.size and depth.max() <= np.iinfo(np.uint16).max  # sorted by their digits
    by_depth = np.argsort(depth.astype(np.uint16) if few else depth, kind="stable")
    levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)
    for above, level in pairwise(levels):
        place = np.searchsorted(above, level) - 1
        parent[level] = np.where(place >= 0, above[place], NONE)
    return parent
