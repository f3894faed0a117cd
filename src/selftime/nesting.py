"""How the slices of a track lie within each other.

A slice's parent is the innermost slice of its track that contains it; its self time is the time
in which it is the innermost, that is the latest begun of those open. So the self times of a track
add up to the union of its slices, whether they nest or cross. Where slices nest, self time is the
duration less that of the children.

Slices that begin or end up to `BLEED` beyond a neighbour do so by rounding: they are clipped.
Slices that cross for longer are kept as they are.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLEED",
    "NONE",
    "Nesting",
    "innermost_at",
    "innermost_on",
    "nearest",
    "nest",
]

BLEED: Final = 1_000
"""Rounding of microseconds makes neighbours cross by up to this many ns."""

NONE: Final = -1
"""No such slice."""

_TURNS: Final = 16
"""A clipped begin may make another slice cross; a chain of so many is not rounding, and is kept."""
_STEPS: Final = 64
"""Slices are nested less deep than this, but for recursion: beyond it, climbing goes by leaps."""

Ints = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, slots=True)
class Nesting:
    """For each slice, in the order given: clipped times, parent's position, depth, self time."""

    start: Ints
    end: Ints
    parent: Ints
    depth: Ints
    self_time: Ints


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
        """Nest one track as if nothing crossed; then mend the stretches in which slices cross."""
        start, end = self.start[low:high], self.end[low:high]
        depth = open_before(start, end)
        parent = parents_by_depth(depth)
        has = parent != NONE
        crossing = np.zeros(start.size, bool)
        crossing[has] = (end[has] > end[parent[has]]) | (start[has] >= end[parent[has]])
        self.depth[low:high] = depth
        self.parent[low:high] = np.where(has, parent + low, NONE)
        inside = np.bincount(parent[has], (end - start)[has], start.size)
        self.self_time[low:high] -= inside.astype(np.int64)
        if crossing.any():
            self._mend(low, high, crossing)

    def _mend(self, low: int, high: int, crossing: NDArray[np.bool_]) -> None:
        """Nest anew, one by one, each stretch of touching slices that holds a crossing."""
        start, reach = self.start[low:high], np.maximum.accumulate(self.end[low:high])
        begins = np.append(True, start[1:] >= reach[:-1])
        stretch = np.cumsum(begins) - 1
        edges = np.append(np.flatnonzero(begins), high - low) + low
        for number in np.unique(stretch[crossing]):
            self._mend_stretch(int(edges[number]), int(edges[number + 1]))

    def _mend_stretch(self, low: int, high: int) -> None:
        starts, ends = self.start[low:high].tolist(), self.end[low:high].tolist()
        order = _clip_bleeds(starts, ends, self.bleed)
        parent, depth = _innermost_containers(order, starts, ends)
        self.start[low:high], self.end[low:high] = starts, ends
        self.parent[low:high] = [NONE if p == NONE else p + low for p in parent]
        self.depth[low:high] = depth
        self.self_time[low:high] = _innermost_times(order, starts, ends)


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


def _clip_bleeds(starts: list[int], ends: list[int], bleed: int) -> list[int]:
    """Clip crossings of up to `bleed` in place; the order of the slices after that."""
    order = list(range(len(starts)))
    for _ in range(_TURNS):
        order.sort(key=lambda i: (starts[i], -ends[i], i))
        if not _clip_once(order, starts, ends, bleed):
            return order
    order.sort(key=lambda i: (starts[i], -ends[i], i))
    return order


def _clip_once(order: list[int], starts: list[int], ends: list[int], bleed: int) -> bool:
    """One pass over the slices; whether a start was moved, so that the order is to be made anew."""
    moved = False
    open_slices: list[int] = []
    for i in order:
        while open_slices:
            top = open_slices[-1]
            if ends[top] <= starts[i]:
                open_slices.pop()
            elif ends[i] <= ends[top]:
                break
            elif ends[i] - ends[top] <= bleed:
                ends[i] = ends[top]
            elif ends[top] - starts[i] <= bleed:
                ends[top] = starts[i]
            elif 0 < starts[i] - starts[top] <= bleed:
                starts[top] = starts[i]
                moved = True
                open_slices.pop()
            else:
                break
        open_slices.append(i)
    return moved


def _innermost_containers(
    order: list[int], starts: list[int], ends: list[int]
) -> tuple[list[int], list[int]]:
    """Parent and depth of each slice; one that crosses another may lie deeper down."""
    parent, depth = [NONE] * len(order), [0] * len(order)
    open_slices: list[int] = []
    for i in order:
        # What ends before this one contains nothing that this one does not: ends fall on the stack.
        while open_slices and (
            ends[open_slices[-1]] < ends[i] or ends[open_slices[-1]] <= starts[i]
        ):
            open_slices.pop()
        if open_slices:
            above = open_slices[-1]
            parent[i], depth[i] = above, depth[above] + 1
        open_slices.append(i)
    return parent, depth


def _innermost_times(order: list[int], starts: list[int], ends: list[int]) -> list[int]:
    """Time in which each slice is the latest begun of those open."""
    own = [0] * len(order)
    open_slices: list[int] = []
    now = starts[order[0]]
    for until, opening in [*((starts[i], i) for i in order), (max(ends), NONE)]:
        while open_slices and now < until:
            top = open_slices[-1]
            if ends[top] <= now:
                open_slices.pop()
                continue
            upto = min(ends[top], until)
            own[top] += upto - now
            now = upto
        now = until
        open_slices.append(opening)
    return own


def nearest(parent: Ints, wanted: NDArray[np.bool_], where: Ints) -> Ints:
    """From each position in `where`: itself or its nearest ancestor that is wanted, else NONE."""
    at = where.copy()
    climbing = np.flatnonzero(at != NONE)
    climbing = climbing[~wanted[at[climbing]]]
    for _ in range(_STEPS):
        if not climbing.size:
            return at
        at[climbing] = parent[at[climbing]]
        climbing = climbing[at[climbing] != NONE]
        climbing = climbing[~wanted[at[climbing]]]
    above = np.where(wanted, np.arange(parent.size), parent)
    while climbing.size:  # twice as far with each turn, for towers of calls
        above = np.where(above == NONE, NONE, above[above])
        at[climbing] = above[at[climbing]]
        climbing = climbing[at[climbing] != NONE]
        climbing = climbing[~wanted[at[climbing]]]
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
