"""Nest slices that cross: the parent is the one begun last; only crossing groups are revisited."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from selftime.arrays import Flags as Bools
from selftime.arrays import SignedInts
from selftime.arrays import SignedInts as Ints

ROUNDING_NS: Final = 1_000
"""The most ns by which neighbours cross because times are rounded to microseconds."""

NONE: Final = -1
"""The index that means "no slice"."""

_MOST_PASSES: Final = 16
"""The most passes of clipping: a longer chain of crossings is no rounding error, and is kept."""
_LEVELS: Final = 64
"""The most levels that are handled one by one; deeper recursion is handled in one pass."""


@dataclass(frozen=True, slots=True)
class Nesting:
    """For each slice, in the order given: clipped times in ns, parent's index, depth, self time."""

    start: SignedInts
    end: SignedInts
    parent: SignedInts
    depth: SignedInts
    self_time: SignedInts


def correct_crossings(nested: Nesting, crossing: Bools, bleed: int) -> None:
    """Correct, in place, the nesting of the slices around each crossing.

    A slice that crosses nothing is handled as one unit with its contents, and is opened only if
    there is a crossing inside.

    Args:
        nested: Slices nested as if none crossed. Self times do not subtract crossing slices.
        crossing: Which slices are not within their seeming parent, shape (n,).
        bleed: The most ns by which a crossing counts as rounding, and is clipped.
    """
    at = np.flatnonzero(_Stretches(nested.start, nested.end).holding(crossing))
    whole = np.zeros(crossing.size, bool)
    whole[at] = crosses_nothing(nested.start[at], nested.end[at])
    above = np.full(at.size, NONE)
    for _ in range(_LEVELS):
        if not at.size:
            return
        at, above = _correct_level(nested, at, above, whole[at], crossing[at], bleed)
    _correct_level(nested, at, above, np.zeros(at.size, bool), crossing[at], bleed)


def _correct_level(
    nested: Nesting,
    at: Ints,
    above: Ints,
    whole: Bools,
    crossing: Bools,
    bleed: int,
) -> tuple[Ints, Ints]:
    """Correct the outermost of some slices; returns the slices inside that remain.

    Args:
        nested: All slices.
        at: Indices of some slices, ascending, shape (n,).
        above: The already nested parent of each, or NONE.
        whole: Which cross nothing.
        crossing: Which are not within their seeming parent.
        bleed: The most ns by which a crossing counts as rounding.

    Returns:
        Indices of the remaining slices, and the parent of each.
    """
    start, end = nested.start[at], nested.end[at]
    stretches = _Stretches(start, end)
    holding = stretches.holding(crossing)
    piece = _outermost_units(start, end, whole)
    outermost = piece == np.arange(at.size)
    before = nested.depth[at]
    level = holding & outermost
    own = _nest_one_by_one(nested, at[level], above[level], whole[level], bleed)
    _subtract_self_time(nested, above[level], own)
    sound = ~holding[stretches.first]
    _subtract_self_time(nested, above[stretches.first][sound], stretches.length[sound])
    inside = holding & ~outermost
    nested.depth[at[inside]] += (nested.depth[at] - before)[piece[inside]]
    opened = np.zeros(at.size, bool)
    opened[piece[inside & crossing]] = True
    nested.self_time[at[opened]] = (end - start)[opened]
    left = inside & opened[piece]
    return at[left], at[piece[left]]


def _subtract_self_time(nested: Nesting, above: Ints, times: Ints) -> None:
    """Subtract the time covered by inner slices from the self time of their parents."""
    within = above != NONE
    np.subtract.at(nested.self_time, above[within], times[within])


class _Stretches:
    """Slices in order of start, grouped into stretches without a gap between them."""

    def __init__(self, start: Ints, end: Ints) -> None:
        begins = np.append(True, start[1:] >= np.maximum.accumulate(end)[:-1])[: start.size]
        self._of = np.cumsum(begins) - 1
        self.first = np.flatnonzero(begins)
        """The index of each stretch's first slice."""
        self.length = np.maximum.reduceat(end, self.first) - start[self.first]
        """The duration of each stretch in ns."""

    def holding(self, marked: Bools) -> Bools:
        """Returns for each slice whether its stretch contains a marked slice."""
        held = np.bincount(self._of[marked], minlength=self.first.size)
        return np.asarray(held[self._of] > 0)


def crosses_nothing(start: Ints, end: Ints) -> Bools:
    """Returns which slices cross no other slice.

    Args:
        start: Start of each slice of one track, ascending, shape (n,).
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
    """Returns the minimum or maximum of each index range, by a sparse table.

    A range is covered by two overlapping ranges of the greatest power of two within its length;
    only one row of the table is in memory at a time. For an empty range it returns the neutral
    value.
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


def _outermost_units(start: Ints, end: Ints, whole: Bools) -> Ints:
    """Returns for each slice the outermost non-crossing slice around it; else its own index."""
    places = np.arange(start.size)
    roots = np.flatnonzero(whole)
    if not roots.size:
        return places
    roots = roots[
        _Stretches(start[roots], end[roots]).first
    ]  # non-crossing slices do not cross each other
    last = roots[np.maximum(np.searchsorted(roots, places, "right") - 1, 0)]
    return np.where((last <= places) & (start < end[last]), last, places)


def _nest_one_by_one(nested: Nesting, at: Ints, above: Ints, whole: Bools, bleed: int) -> Ints:
    """Nest slices in one pass; returns the self time of each in ns."""
    if not at.size:
        return at
    starts, ends = nested.start[at].tolist(), nested.end[at].tolist()
    order = _clip_rounding(starts, ends, bleed)
    parents, depths = (np.array(found) for found in _innermost_containers(order, starts, ends))
    own = np.array(_innermost_times(order, starts, ends))
    base = np.where(above == NONE, 0, nested.depth[above] + 1)
    nested.start[at], nested.end[at] = starts, ends
    nested.parent[at] = np.where(parents == NONE, above, at[parents])
    nested.depth[at] = depths + base
    nested.self_time[at[~whole]] = own[~whole]  # slices kept as one unit have theirs already
    return own


def _clip_rounding(starts: list[int], ends: list[int], bleed: int) -> list[int]:
    """Clip crossings of up to `bleed` ns in place; returns the slices' order afterwards."""
    order = list(range(len(starts)))
    for _ in range(_MOST_PASSES):
        order.sort(key=lambda i: (starts[i], -ends[i], i))
        if not _clip_once(order, starts, ends, bleed):
            return order
    order.sort(key=lambda i: (starts[i], -ends[i], i))
    return order


def _clip_once(order: list[int], starts: list[int], ends: list[int], bleed: int) -> bool:
    """Clip in one pass; returns whether a start moved, so that the order has changed."""
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
    """Returns parent and depth of each slice."""
    parent, depth = [NONE] * len(order), [0] * len(order)
    open_slices: list[int] = []
    for i in order:
        # A slice that ends earlier cannot contain this one or later ones: ends fall on the stack.
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
    """Returns the time in ns in which each slice is the latest begun open slice."""
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
