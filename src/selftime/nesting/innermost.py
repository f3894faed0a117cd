"""Find the innermost slice at a time, and the nearest ancestor with a property."""

from typing import Final

import numpy as np

from selftime.arrays import Flags as Bools
from selftime.arrays import SignedInts as Ints
from selftime.nesting.crossings import NONE

_STEPS: Final = 64
"""Levels that are climbed one by one; deeper recursion is climbed in doubling steps."""


def nearest(parent: Ints, wanted: Bools, where: Ints) -> Ints:
    """Returns for each index in `where` itself or its nearest wanted ancestor, else NONE."""
    at = where.copy()
    arrives = np.append(wanted, True)  # the last entry is for NONE: a root has no parent
    climbing = np.flatnonzero(~arrives[at])
    here, above, steps = at[climbing], parent, 0
    while climbing.size:
        if steps == _STEPS:
            above = np.where(wanted, np.arange(parent.size), parent)
        if steps >= _STEPS:  # double the step each time, for deep recursion
            above = np.where(above == NONE, NONE, above[above])
        here = above[here]
        arrived = arrives[here]
        at[climbing[arrived]] = here[arrived]
        climbing, here = climbing[~arrived], here[~arrived]
        steps += 1
    return at


def innermost_at(start: Ints, end: Ints, parent: Ints, when: Ints) -> Ints:
    """Returns the innermost slice of one track that is open at each time, else NONE.

    Args:
        start: Start of each slice of the track, ascending, shape (n,).
        end: End of each slice, shape (n,).
        parent: Index of each slice's parent, or NONE, shape (n,).
        when: The times to look up, shape (m,).
    """
    if not start.size:
        return np.full(when.size, NONE, np.int64)
    at = np.searchsorted(start, when, side="right") - 1
    return _still_open(at, end, parent, when)


def innermost_on(
    track: Ints, start: Ints, end: Ints, parent: Ints, asked: Ints, when: Ints
) -> Ints:
    """Returns the same as `innermost_at` for many tracks; slices may be in any order.

    Args:
        track: The track of each slice, 0 or more, shape (n,).
        start: Start of each slice, 0 or more, shape (n,).
        end: End of each slice, shape (n,).
        parent: Index of each slice's parent, or NONE, shape (n,).
        asked: The track to look up, shape (m,).
        when: The times to look up, shape (m,).
    """
    if not start.size or not when.size:
        return np.full(when.size, NONE, np.int64)
    key, wanted = _track_time_keys(track, start, asked, when)
    order = _by_track(track, key)
    asked_order = _by_track(asked, wanted)
    place = np.empty(when.size, np.int64)
    place[asked_order] = np.searchsorted(key[order], wanted[asked_order], side="right") - 1
    at = np.where(place == NONE, NONE, order[place])
    at[track[at] != asked] = NONE
    return _still_open(at, end, parent, when)


def _by_track(track: Ints, key: Ints) -> Ints:
    """Returns the sort order of the keys, which are mostly sorted within each track."""
    fits_uint16 = track.max() <= np.iinfo(np.uint16).max
    order = np.argsort(track.astype(np.uint16) if fits_uint16 else track, kind="stable")
    sorted_ = key[order]
    return order if (sorted_[1:] >= sorted_[:-1]).all() else np.argsort(key, kind="stable")


def _track_time_keys(track: Ints, start: Ints, asked: Ints, when: Ints) -> tuple[Ints, Ints]:
    """Returns sort keys for times on several tracks, ordered by track, then time."""
    span = max(int(start.max()), int(when.max())) + 1
    if (max(int(track.max()), int(asked.max())) + 1) * span > np.iinfo(np.int64).max:
        _, rank = np.unique(np.concatenate([start, when]), return_inverse=True)
        start, when, span = rank[: start.size], rank[start.size :], rank.size + 1
    return track * span + start, asked * span + when


def _still_open(at: Ints, end: Ints, parent: Ints, when: Ints) -> Ints:
    """Returns for each index itself or its nearest ancestor that has not ended, else NONE."""
    climbing = np.flatnonzero(at != NONE)
    climbing = climbing[end[at[climbing]] <= when[climbing]]
    for _ in range(_STEPS):
        if not climbing.size:
            return at
        at[climbing] = parent[at[climbing]]
        climbing = climbing[at[climbing] != NONE]
        climbing = climbing[end[at[climbing]] <= when[climbing]]
    leaps = [parent]
    while (leaps[-1] != NONE).any():
        leaps.append(np.where(leaps[-1] == NONE, NONE, leaps[-1][leaps[-1]]))
    for leap in reversed(leaps):  # parents end last: climb past all slices that have ended
        up = leap[at[climbing]]
        ended = (up != NONE) & (end[up] <= when[climbing])
        at[climbing[ended]] = up[ended]
    at[climbing] = parent[at[climbing]]
    return at
