"""Nest the slices of each track as if none crossed, then correct the crossings."""

from itertools import pairwise

import numpy as np

from selftime.arrays import SignedInts as Ints
from selftime.nesting.crossings import NONE, ROUNDING_NS, Nesting, correct_crossings


def nest(track: Ints, start: Ints, end: Ints, rank: Ints, *, bleed: int = ROUNDING_NS) -> Nesting:
    """Returns the nesting of the slices of every track.

    Args:
        track: The track of each slice, shape (n,).
        start: Start of each slice in ns, shape (n,).
        end: End of each slice in ns, not before its start, shape (n,).
        rank: Of slices with equal times the one with the lower rank is the outer, then the earlier.
        bleed: The most ns by which a crossing counts as rounding, and is clipped.
    """
    order = _outer_first(track, start, end, rank)
    tracks_sorted = _Sorted(start[order], end[order], bleed)
    bounds = np.flatnonzero(np.diff(track[order])) + 1
    for low, high in zip([0, *bounds], [*bounds, order.size], strict=True):
        tracks_sorted.nest_track(int(low), int(high))
    found = Nesting(*(np.empty(order.size, np.int64) for _ in range(5)))
    found.start[order], found.end[order] = tracks_sorted.start, tracks_sorted.end
    found.depth[order], found.self_time[order] = tracks_sorted.depth, tracks_sorted.self_time
    found.parent[order] = np.where(tracks_sorted.parent == NONE, NONE, order[tracks_sorted.parent])
    return found


def _outer_first(track: Ints, start: Ints, end: Ints, rank: Ints) -> Ints:
    """Returns the order by track and start; at equal starts longest first, then lowest rank.

    Slices mostly come sorted by start, and few start together: only those are compared further.
    """
    order = np.arange(start.size)
    if start.size and (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
    fits_uint16 = (
        track.size and track.max() <= np.iinfo(np.uint16).max
    )  # small integers sort faster
    on_track = track[order].astype(np.uint16 if fits_uint16 else np.int64)
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
    """The slices of all tracks sorted by (track, start, longest first), and their nesting."""

    def __init__(self, start: Ints, end: Ints, bleed: int) -> None:
        self.start, self.end, self.bleed = start, end, bleed
        self.parent = np.full(start.size, NONE, np.int64)
        self.depth = np.zeros(start.size, np.int64)
        self.self_time = end - start

    def nest_track(self, low: int, high: int) -> None:
        """Nest one track as if nothing crossed; then correct crossings."""
        start, end = self.start[low:high], self.end[low:high]
        depth = count_open_before(start, end)
        parent = parents_by_depth(depth)
        has = parent != NONE
        crossing = np.zeros(start.size, bool)
        crossing[has] = (end[has] > end[parent[has]]) | (start[has] >= end[parent[has]])
        inside = np.flatnonzero(has & ~crossing)
        children = np.bincount(parent[inside], (end - start)[inside], start.size)
        own = end - start - children.astype(np.int64)
        if crossing.any():
            correct_crossings(Nesting(start, end, parent, depth, own), crossing, self.bleed)
        self.depth[low:high], self.self_time[low:high] = depth, own
        self.parent[low:high] = np.where(parent == NONE, NONE, parent + low)


def count_open_before(start: Ints, end: Ints) -> Ints:
    """Returns how many earlier slices of the track are still open when each begins."""
    places = np.arange(start.size)
    closed = np.searchsorted(np.sort(end), start, side="right")
    # Slices of zero length end when they begin; those that come later do not count as closed.
    empty = end == start
    if not empty.any():
        return np.asarray(places - closed, np.int64)
    upto = np.cumsum(empty)
    last_of_start = np.searchsorted(start, start, side="right") - 1
    return np.asarray(places - (closed - (upto[last_of_start] - upto + empty)), np.int64)


def parents_by_depth(depth: Ints) -> Ints:
    """Returns the last earlier slice one level up of each slice; NONE at the root."""
    parent = np.full(depth.size, NONE, np.int64)
    fits_uint16 = (
        depth.size and depth.max() <= np.iinfo(np.uint16).max
    )  # small integers sort faster
    by_depth = np.argsort(depth.astype(np.uint16) if fits_uint16 else depth, kind="stable")
    levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)
    for above, level in pairwise(levels):
        place = np.searchsorted(above, level) - 1
        parent[level] = np.where(place >= 0, above[place], NONE)
    return parent
