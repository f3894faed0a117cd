"""Slices that cross: nested by who begins last, the few around each crossing one by one."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from selftime.arrays import Flags as Bools
from selftime.arrays import SignedInts
from selftime.arrays import SignedInts as Ints

BLEED: Final = 1_000
"""Rounding of microseconds makes neighbours cross by up to this many ns."""

NONE: Final = -1
"""No such slice."""

_TURNS: Final = 16
"""A clipped begin may make another slice cross; a chain of so many is not rounding, and is kept."""
_LEVELS: Final = 64
"""Slices are nested less deep than this, but for recursion: what is deeper is mended as it lies."""


@dataclass(frozen=True, slots=True)
class Nesting:
    """For each slice, in the order given: clipped times, parent's position, depth, self time."""

    start: SignedInts
    end: SignedInts
    parent: SignedInts
    depth: SignedInts
    self_time: SignedInts


def mend(nested: Nesting, crossing: Bools, bleed: int) -> None:
    """Nest anew, in place, the slices around each crossing.

    What crosses nothing is one piece with all that lies in it: it takes part in what is around it
    as one slice, and is opened only if there is a crossing inside.

    Args:
        nested: Slices that were nested as if nothing crossed. Self times leave out those crossing.
        crossing: Which are not within the slice that they seemed to lie in, shape (n,).
        bleed: By how many ns a crossing is rounding, to be clipped.
    """
    at = np.flatnonzero(_Stretches(nested.start, nested.end).holding(crossing))
    whole = np.zeros(crossing.size, bool)
    whole[at] = crosses_nothing(nested.start[at], nested.end[at])
    above = np.full(at.size, NONE)
    for _ in range(_LEVELS):
        if not at.size:
            return
        at, above = _mend_level(nested, at, above, whole[at], crossing[at], bleed)
    _mend_level(nested, at, above, np.zeros(at.size, bool), crossing[at], bleed)


def _mend_level(
    nested: Nesting,
    at: Ints,
    above: Ints,
    whole: Bools,
    crossing: Bools,
    bleed: int,
) -> tuple[Ints, Ints]:
    """Mend the outermost of some slices; what is left to do inside of them.

    Args:
        nested: All slices.
        at: Positions of some, ascending, shape (n,).
        above: What each lies in that is nested already, or NONE.
        whole: Which cross nothing.
        crossing: Which are not within the slice that they seemed to lie in.
        bleed: By how many ns a crossing is rounding.

    Returns:
        Positions of the slices left, and what each lies in.
    """
    start, end = nested.start[at], nested.end[at]
    stretches = _Stretches(start, end)
    holding = stretches.holding(crossing)
    piece = _pieces(start, end, whole)
    outermost = piece == np.arange(at.size)
    before = nested.depth[at]
    level = holding & outermost
    own = _mend_one_by_one(nested, at[level], above[level], whole[level], bleed)
    _take_off(nested, above[level], own)
    sound = ~holding[stretches.first]
    _take_off(nested, above[stretches.first][sound], stretches.length[sound])
    inside = holding & ~outermost
    nested.depth[at[inside]] += (nested.depth[at] - before)[piece[inside]]
    opened = np.zeros(at.size, bool)
    opened[piece[inside & crossing]] = True
    nested.self_time[at[opened]] = (end - start)[opened]
    left = inside & opened[piece]
    return at[left], at[piece[left]]


def _take_off(nested: Nesting, above: Ints, times: Ints) -> None:
    """What is covered by slices inside of another is not that one's self time."""
    within = above != NONE
    np.subtract.at(nested.self_time, above[within], times[within])


class _Stretches:
    """Slices in order of start, cut wherever none is open: each stretch is one piece of time."""

    def __init__(self, start: Ints, end: Ints) -> None:
        begins = np.append(True, start[1:] >= np.maximum.accumulate(end)[:-1])[: start.size]
        self._of = np.cumsum(begins) - 1
        self.first = np.flatnonzero(begins)
        """Place of each stretch's first slice."""
        self.length = np.maximum.reduceat(end, self.first) - start[self.first]
        """Time from each stretch's begin to its end, in ns."""

    def holding(self, marked: Bools) -> Bools:
        """Of each slice, whether its stretch holds one that is marked."""
        held = np.bincount(self._of[marked], minlength=self.first.size)
        return np.asarray(held[self._of] > 0)


def crosses_nothing(start: Ints, end: Ints) -> Bools:
    """Which slices neither end within another that begins within them, nor the other way round.

    Args:
        start: Begin of each slice of one track, ascending, shape (n,).
        end: End of each slice, shape (n,).
    """
    by_end = np.argsort(end, kind="stable")
    ends = end[by_end]
    last_end = _extremes(
        np.maximum, end, np.searchsorted(start, start, "right"), np.searchsorted(start, end)
    )
    first_start = _extremes(
        np.minimum, start[by_end], np.searchsorted(ends, start, "right"), np.searchsorted(ends, end)
    )
    return np.asarray((last_end <= end) & (first_start >= start))


def _extremes(ufunc: np.ufunc, values: Ints, low: Ints, high: Ints) -> Ints:
    """The least or greatest value of each range of places, by ranges of doubling length.

    A range is covered by two of the greatest power of two within its length (a sparse table, of
    which one row is held at a time). Of an empty range it is the bound that no value passes.
    """
    worst = np.iinfo(np.int64).min if ufunc is np.maximum else np.iinfo(np.int64).max
    found = np.full(low.size, worst, np.int64)
    _, power = np.frexp(np.maximum(high - low, 0).astype(np.float64))  # 0 for an empty range
    order = np.argsort(power.astype(np.uint8), kind="stable")
    bounds = np.searchsorted(power[order], np.arange(1, int(power.max(initial=0)) + 2))
    row, width = values, 1
    for first, last in pairwise(bounds):
        asked = order[first:last]
        found[asked] = ufunc(row[low[asked]], row[high[asked] - width])
        row = ufunc(row[:-width], row[width:])
        width *= 2
    return found


def _pieces(start: Ints, end: Ints, whole: Bools) -> Ints:
    """Of each slice, the place of the outermost whole one that it lies in; its own if in none."""
    places = np.arange(start.size)
    roots = np.flatnonzero(whole)
    if not roots.size:
        return places
    roots = roots[_Stretches(start[roots], end[roots]).first]  # those that are whole do not cross
    last = roots[np.maximum(np.searchsorted(roots, places, "right") - 1, 0)]
    return np.where((last <= places) & (start < end[last]), last, places)


def _mend_one_by_one(nested: Nesting, at: Ints, above: Ints, whole: Bools, bleed: int) -> Ints:
    """Nest slices by one pass over them; how long each is the innermost."""
    if not at.size:
        return at
    starts, ends = nested.start[at].tolist(), nested.end[at].tolist()
    order = _clip_bleeds(starts, ends, bleed)
    parents, depths = (np.array(found) for found in _innermost_containers(order, starts, ends))
    own = np.array(_innermost_times(order, starts, ends))
    base = np.where(above == NONE, 0, nested.depth[above] + 1)
    nested.start[at], nested.end[at] = starts, ends
    nested.parent[at] = np.where(parents == NONE, above, at[parents])
    nested.depth[at] = depths + base
    nested.self_time[at[~whole]] = own[~whole]  # a whole one's self time is without its inside
    return own


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
