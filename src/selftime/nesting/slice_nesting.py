"""Nests the slices of each track as if none crossed, then corrects those that cross."""

from itertools import pairwise
from typing import Final

import numpy as np

from selftime.array_types import Flags as Bools
from selftime.array_types import SignedInts as Ints
from selftime.nesting.slice_crossings import (
    MAX_ROUNDING_CROSSING_NS,
    NO_SLICE,
    Nesting,
    correct_crossings,
)


def nest_slices(
    track: Ints,
    start: Ints,
    end: Ints,
    tie_order: Ints,
    *,
    rounding_ns: int = MAX_ROUNDING_CROSSING_NS,
) -> Nesting:
    """Returns parent, depth and self time (ns) of each slice, nested within its track.

    Args:
        track: The track of each slice, shape (n,).
        start: Start of each slice in ns, shape (n,).
        end: End of each slice in ns, not before its start, shape (n,).
        tie_order: Of slices with equal times the one with the lower number is the outer; of equal
            numbers the earlier.
        rounding_ns: The most ns by which a crossing counts as rounding, and is clipped.
    """
    order = _outer_first_order(track, start, end, tie_order)
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


def _outer_first_order(track: Ints, start: Ints, end: Ints, tie_order: Ints) -> Ints:
    """Returns the indexes that sort slices by track, start, longest first, then `tie_order`.

    Slices mostly come sorted by start, and few start together: only those are
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
        order[tied] = among[np.lexsort((among, tie_order[among], -end[among], group))]
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


_MAX_ANCESTORS_VISITED_ONE_BY_ONE: Final = 64
"""Number of ancestor levels that are climbed one by one. Above that, each step doubles the number
of levels.
"""


def nearest_ancestor(parent: Ints, is_wanted: Bools, indices: Ints) -> Ints:
    """Returns each index's nearest slice flagged in `is_wanted`: itself, an ancestor, or -1."""
    at = indices.copy()
    arrives = np.append(is_wanted, True)  # the last entry is for -1: a root has no parent
    climbing = np.flatnonzero(~arrives[at])
    here, above, steps = at[climbing], parent, 0
    while climbing.size:
        if steps == _MAX_ANCESTORS_VISITED_ONE_BY_ONE:
            above = np.where(is_wanted, np.arange(parent.size), parent)
        if (
            steps >= _MAX_ANCESTORS_VISITED_ONE_BY_ONE
        ):  # double the step each time, for deep recursion
            above = np.where(above == NO_SLICE, NO_SLICE, above[above])
        here = above[here]
        arrived = arrives[here]
        at[climbing[arrived]] = here[arrived]
        climbing, here = climbing[~arrived], here[~arrived]
        steps += 1
    return at


def flag_with_ancestors(parent: Ints, indices: Ints) -> Bools:
    """Flags the slices at the indices and all their ancestors, shape of `parent`.

    Indices may repeat, and be -1 for none.

    >>> flag_with_ancestors(np.array([-1, 0, 1, 0]), np.array([2, -1]))
    array([ True,  True,  True, False])
    """
    flags = np.zeros(parent.size, np.bool_)
    flags[indices[indices != NO_SLICE]] = True
    at, place = np.flatnonzero(flags), np.zeros(parent.size, np.int32)
    while at.size:
        above = parent[at]
        above = above[above != NO_SLICE]
        above = above[~flags[above]]
        number = np.arange(above.size, dtype=np.int32)
        place[above] = number  # of slices with one parent, the last to be written remains
        at = above[place[above] == number]
        flags[at] = True
    return flags


def innermost_slice_at(start: Ints, end: Ints, parent: Ints, times: Ints) -> Ints:
    """Returns the index of a track's innermost slice open at each time, or -1 if none is open.

    Args:
        start: Start of each slice of the track, ascending, shape (n,).
        end: End of each slice, shape (n,).
        parent: Index of each slice's parent, or -1 if there is none, shape (n,).
        times: The times to look up, shape (m,).
    """
    if not start.size:
        return np.full(times.size, NO_SLICE, np.int64)
    at = np.searchsorted(start, times, side="right") - 1
    return _nearest_unended_ancestor(at, end, parent, times)


def innermost_of_slices_at(ids: Ints, start: Ints, end: Ints, parent: Ints, times: Ints) -> Ints:
    """Returns the id of the innermost of a track's slices open at each time, or -1 for none.

    Args:
        ids: The slices of the track in order of their start, shape (n,).
        start: Start of each of them, ascending, shape (n,).
        end: End of each slice of the trace, by id.
        parent: Id of the parent of each slice of the trace, on the same track, or -1, by id.
        times: The times to look up, shape (m,).
    """
    if not ids.size:
        return np.full(times.size, NO_SLICE, np.int64)
    place = np.searchsorted(start, times, side="right") - 1
    at = np.where(place < 0, NO_SLICE, ids[place])
    return _nearest_unended_ancestor(at, end, parent, times)


def innermost_slice_on_tracks(
    track: Ints, start: Ints, end: Ints, parent: Ints, wanted_tracks: Ints, times: Ints
) -> Ints:
    """Returns the index of the innermost slice open at each (track, time) pair, or -1 for none.

    Slices may be in any order.
    """
    if not start.size or not times.size:
        return np.full(times.size, NO_SLICE, np.int64)
    key, wanted = _track_time_keys(track, start, wanted_tracks, times)
    order = _sort_order_by_track(track, key)
    asked_order = _sort_order_by_track(wanted_tracks, wanted)
    place = np.empty(times.size, np.int64)
    place[asked_order] = np.searchsorted(key[order], wanted[asked_order], side="right") - 1
    at = np.where(place == NO_SLICE, NO_SLICE, order[place])
    at[track[at] != wanted_tracks] = NO_SLICE
    return _nearest_unended_ancestor(at, end, parent, times)


def _sort_order_by_track(track: Ints, sort_keys: Ints) -> Ints:
    """Returns the indexes that sort the keys by track; keys mostly are in order within a track."""
    fits_uint16 = track.max() <= np.iinfo(np.uint16).max
    order = np.argsort(track.astype(np.uint16) if fits_uint16 else track, kind="stable")
    sorted_ = sort_keys[order]
    return order if (sorted_[1:] >= sorted_[:-1]).all() else np.argsort(sort_keys, kind="stable")


def _track_time_keys(
    track: Ints, start: Ints, wanted_tracks: Ints, times: Ints
) -> tuple[Ints, Ints]:
    """Returns sort keys for times on several tracks, ordered by track, then time."""
    span = max(int(start.max()), int(times.max())) + 1
    if (max(int(track.max()), int(wanted_tracks.max())) + 1) * span > np.iinfo(np.int64).max:
        _, rank = np.unique(np.concatenate([start, times]), return_inverse=True)
        start, times, span = rank[: start.size], rank[start.size :], rank.size + 1
    return track * span + start, wanted_tracks * span + times


def _nearest_unended_ancestor(indices: Ints, end: Ints, parent: Ints, times: Ints) -> Ints:
    """Returns for each (index, time) the slice or nearest ancestor open then, or -1 for none."""
    climbing = np.flatnonzero(indices != NO_SLICE)
    climbing = climbing[end[indices[climbing]] <= times[climbing]]
    for _ in range(_MAX_ANCESTORS_VISITED_ONE_BY_ONE):
        if not climbing.size:
            return indices
        indices[climbing] = parent[indices[climbing]]
        climbing = climbing[indices[climbing] != NO_SLICE]
        climbing = climbing[end[indices[climbing]] <= times[climbing]]
    leaps = [parent]
    while (leaps[-1] != NO_SLICE).any():
        leaps.append(np.where(leaps[-1] == NO_SLICE, NO_SLICE, leaps[-1][leaps[-1]]))
    for leap in reversed(leaps):  # parents end last: climb past all slices that have ended
        up = leap[indices[climbing]]
        ended = (up != NO_SLICE) & (end[up] <= times[climbing])
        indices[climbing[ended]] = up[ended]
    indices[climbing] = parent[indices[climbing]]
    return indices
