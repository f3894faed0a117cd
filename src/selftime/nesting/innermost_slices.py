"""Finds the innermost slice open at an instant, and a slice's nearest ancestor with a property."""

from typing import Final

import numpy as np

from selftime.array_types import Flags as Bools
from selftime.array_types import SignedInts as Ints
from selftime.nesting.slice_crossings import NO_SLICE

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
