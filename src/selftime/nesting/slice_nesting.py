"""Nests the slices of each track as if none crossed, then corrects those that cross."""

from itertools import pairwise

import numpy as np

from selftime.array_types import SignedInts as Ints
from selftime.nesting.slice_crossings import (
    MAX_ROUNDING_CROSSING_NS,
    NO_SLICE,
    Nesting,
    correct_crossings,
)


def nest_slices(
    track: Ints, start: Ints, end: Ints, rank: Ints, *, rounding_ns: int = MAX_ROUNDING_CROSSING_NS
) -> Nesting:
    """Returns parent, depth and self time (ns) of each slice, nested within its track.

    Args:
        track: The track of each slice, shape (n,).
        start: Start of each slice in ns, shape (n,).
        end: End of each slice in ns, not before its start, shape (n,).
        rank: Of slices with equal times the one with the lower rank is the outer, then the earlier.
        rounding_ns: The most ns by which a crossing counts as rounding, and is clipped.
    """
    order = _outer_first_order(track, start, end, rank)
    tracks_sorted = _SortedSlices(start[order], end[order], rounding_ns)
    bounds = np.flatnonzero(np.diff(track[order])) + 1
    for low, high in zip([0, *bounds], [*bounds, order.size], strict=True):
        tracks_sorted.nest_track(int(low), int(high))
    found = Nesting(*(np.empty(order.size, np.int64) for _ in range(5)))
    found.start[order], found.end[order] = tracks_sorted.start, tracks_sorted.end
    found.depth[order], found.self_time[order] = tracks_sorted.depth, tracks_sorted.self_time
    found.parent[order] = np.where(
        tracks_sorted.parent == NO_SLICE, NO_SLICE, order[tracks_sorted.parent]
    )
    return found


def _outer_first_order(track: Ints, start: Ints, end: Ints, rank: Ints) -> Ints:
    """Returns the indexes that sort slices by track, then start, then longest first, then rank.

    Then lowest rank. Slices mostly come sorted by start, and few start together: only those are
    compared further.
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


class _SortedSlices:
    """The slices of all tracks sorted by (track, start, longest first), and their nesting."""

    def __init__(self, start: Ints, end: Ints, rounding_ns: int) -> None:
        self.start, self.end, self.rounding_ns = start, end, rounding_ns
        self.parent = np.full(start.size, NO_SLICE, np.int64)
        self.depth = np.zeros(start.size, np.int64)
        self.self_time = end - start

    def nest_track(self, low: int, high: int) -> None:
        """Nests the slices of one track as if none crossed, then corrects those that cross."""
        start, end = self.start[low:high], self.end[low:high]
        depth = count_enclosing_slices(start, end)
        parent = parents_from_depths(depth)
        has = parent != NO_SLICE
        crossing = np.zeros(start.size, bool)
        crossing[has] = (end[has] > end[parent[has]]) | (start[has] >= end[parent[has]])
        inside = np.flatnonzero(has & ~crossing)
        children = np.bincount(parent[inside], (end - start)[inside], start.size)
        own = end - start - children.astype(np.int64)
        if crossing.any():
            correct_crossings(Nesting(start, end, parent, depth, own), crossing, self.rounding_ns)
        self.depth[low:high], self.self_time[low:high] = depth, own
        self.parent[low:high] = np.where(parent == NO_SLICE, NO_SLICE, parent + low)


def count_enclosing_slices(start: Ints, end: Ints) -> Ints:
    """Returns for each slice how many earlier slices of its track are open when it begins."""
    places = np.arange(start.size)
    closed = np.searchsorted(np.sort(end), start, side="right")
    # Slices of zero length end when they begin; those that come later do not count as closed.
    empty = end == start
    if not empty.any():
        return np.asarray(places - closed, np.int64)
    upto = np.cumsum(empty)
    last_of_start = np.searchsorted(start, start, side="right") - 1
    return np.asarray(places - (closed - (upto[last_of_start] - upto + empty)), np.int64)


def parents_from_depths(depth: Ints) -> Ints:
    """Returns each slice's parent, the last earlier slice one level up; -1 for a root."""
    parent = np.full(depth.size, NO_SLICE, np.int64)
    fits_uint16 = (
        depth.size and depth.max() <= np.iinfo(np.uint16).max
    )  # small integers sort faster
    by_depth = np.argsort(depth.astype(np.uint16) if fits_uint16 else depth, kind="stable")
    levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)
    for above, level in pairwise(levels):
        place = np.searchsorted(above, level) - 1
        parent[level] = np.where(place >= 0, above[place], NO_SLICE)
    return parent
