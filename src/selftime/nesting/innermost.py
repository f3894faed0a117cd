"""The innermost slice at an instant, and the nearest of some kind above another."""

from typing import Final

import numpy as np

from selftime.arrays import Flags as Bools
from selftime.arrays import SignedInts as Ints
from selftime.nesting.crossings import NONE

_STEPS: Final = 64
"""Slices are nested less deep than this, but for recursion: beyond it, climbing goes by leaps."""


def nearest(parent: Ints, wanted: Bools, where: Ints) -> Ints:
    """From each position in `where`: itself or its nearest ancestor that is wanted, else NONE."""
    at = where.copy()
    arrives = np.append(wanted, True)  # the last is that of NONE: above a root is no more
    climbing = np.flatnonzero(~arrives[at])
    here, above, steps = at[climbing], parent, 0
    while climbing.size:
        if steps == _STEPS:
            above = np.where(wanted, np.arange(parent.size), parent)
        if steps >= _STEPS:  # twice as far with each turn, for towers of calls
            above = np.where(above == NONE, NONE, above[above])
        here = above[here]
        arrived = arrives[here]
        at[climbing[arrived]] = here[arrived]
        climbing, here = climbing[~arrived], here[~arrived]
        steps += 1
    return at


def innermost_at(start: Ints, end: Ints, parent: Ints, when: Ints) -> Ints:
    """The innermost slice of one track that is open at each instant, else NONE.

    Args:
        start: Begin of each slice of the track, ascending, shape (n,).
        end: End of each slice, shape (n,).
        parent: Position of each slice's parent, or NONE, shape (n,).
        when: The instants asked for, shape (m,).
    """
    if not start.size:
        return np.full(when.size, NONE, np.int64)
    at = np.searchsorted(start, when, side="right") - 1
    return _still_open(at, end, parent, when)


def innermost_on(
    track: Ints, start: Ints, end: Ints, parent: Ints, asked: Ints, when: Ints
) -> Ints:
    """As `innermost_at`, of many tracks at once; slices may come in any order.

    Args:
        track: The track of each slice, from 0 on, shape (n,).
        start: Begin of each slice, from 0 on, shape (n,).
        end: End of each slice, shape (n,).
        parent: Position of each slice's parent, or NONE, shape (n,).
        asked: The track that is asked for, shape (m,).
        when: The instants asked for, shape (m,).
    """
    if not start.size or not when.size:
        return np.full(when.size, NONE, np.int64)
    key, wanted = _on_one_line(track, start, asked, when)
    order = _by_track(track, key)
    turn = _by_track(asked, wanted)
    place = np.empty(when.size, np.int64)
    place[turn] = np.searchsorted(key[order], wanted[turn], side="right") - 1
    at = np.where(place == NONE, NONE, order[place])
    at[track[at] != asked] = NONE
    return _still_open(at, end, parent, when)


def _by_track(track: Ints, key: Ints) -> Ints:
    """The order of the keys, which are mostly in order on each track."""
    few = track.max() <= np.iinfo(np.uint16).max
    order = np.argsort(track.astype(np.uint16) if few else track, kind="stable")
    sorted_ = key[order]
    return order if (sorted_[1:] >= sorted_[:-1]).all() else np.argsort(key, kind="stable")


def _on_one_line(track: Ints, start: Ints, asked: Ints, when: Ints) -> tuple[Ints, Ints]:
    """Numbers for instants of several tracks, those of one track after those of the one before."""
    span = max(int(start.max()), int(when.max())) + 1
    if (max(int(track.max()), int(asked.max())) + 1) * span > np.iinfo(np.int64).max:
        _, rank = np.unique(np.concatenate([start, when]), return_inverse=True)
        start, when, span = rank[: start.size], rank[start.size :], rank.size + 1
    return track * span + start, asked * span + when


def _still_open(at: Ints, end: Ints, parent: Ints, when: Ints) -> Ints:
    """From each position: itself or its nearest ancestor that has not ended, else NONE."""
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
    for leap in reversed(leaps):  # parents end last: as far up as slices have ended
        up = leap[at[climbing]]
        ended = (up != NONE) & (end[up] <= when[climbing])
        at[climbing[ended]] = up[ended]
    at[climbing] = parent[at[climbing]]
    return at
