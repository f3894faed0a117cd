"""Nests slices that cross each other: a slice's parent is the open slice that began last.

Only groups of slices that cross are nested again.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from selftime.array_types import Flags as Bools
from selftime.array_types import SignedInts
from selftime.array_types import SignedInts as Ints

MAX_ROUNDING_CROSSING_NS: Final = 1_000
"""Largest overlap, in ns, of neighbouring slices that counts as caused by rounding to microseconds.
"""

NO_SLICE: Final = -1
"""The index that means "no slice"."""

_MAX_CLIPPING_PASSES: Final = 16
"""Largest number of passes that clip crossing slices; crossings left after these are kept."""
_MAX_LEVELS_CORRECTED_ONE_BY_ONE: Final = 64
"""Largest nesting depth that is handled level by level; deeper recursion is handled in one pass."""


@dataclass(frozen=True, slots=True)
class Nesting:
    """Start and end (ns, clipped to nest), parent index, depth and self time (ns) of slices."""

    start: SignedInts
    end: SignedInts
    parent: SignedInts
    depth: SignedInts
    self_time: SignedInts


def correct_crossings(nesting: Nesting, is_crossing: Bools, rounding_ns: int) -> None:
    """Corrects, in place, the nesting of the slices around each pair of crossing slices.

    A slice that crosses nothing is handled as one unit with its contents, and is opened only if
    there is a crossing inside.

    Args:
        nesting: Slices nested as if none crossed. Self times do not subtract crossing slices.
        is_crossing: Which slices are not within their seeming parent, shape (n,).
        rounding_ns: The most ns by which a crossing counts as rounding, and is clipped.
    """
    at = np.flatnonzero(_GaplessStretches(nesting.start, nesting.end).has_marked_slice(is_crossing))
    whole = np.zeros(is_crossing.size, bool)
    whole[at] = crosses_no_slice(nesting.start[at], nesting.end[at])
    above = np.full(at.size, NO_SLICE)
    for _ in range(_MAX_LEVELS_CORRECTED_ONE_BY_ONE):
        if not at.size:
            return
        at, above = _correct_outermost_slices(
            nesting, at, above, whole[at], is_crossing[at], rounding_ns
        )
    _correct_outermost_slices(
        nesting, at, above, np.zeros(at.size, bool), is_crossing[at], rounding_ns
    )


def _correct_outermost_slices(
    nesting: Nesting,
    indices: Ints,
    parents: Ints,
    is_whole: Bools,
    is_crossing: Bools,
    rounding_ns: int,
) -> tuple[Ints, Ints]:
    """Nests the outermost slices correctly; returns the remaining slices and their parents.

    Args:
        nesting: All slices.
        indices: Indices of some slices, ascending, shape (n,).
        parents: The already nested parent of each, or -1 if there is none.
        is_whole: Which cross nothing.
        is_crossing: Which are not within their seeming parent.
        rounding_ns: The most ns by which a crossing counts as rounding.

    Returns:
        Indices of the remaining slices, and the parent of each.
    """
    start, end = nesting.start[indices], nesting.end[indices]
    stretches = _GaplessStretches(start, end)
    has_marked_slice = stretches.has_marked_slice(is_crossing)
    piece = _outermost_non_crossing_slice(start, end, is_whole)
    outermost = piece == np.arange(indices.size)
    before = nesting.depth[indices]
    level = has_marked_slice & outermost
    own = _nest_slices_one_by_one(
        nesting, indices[level], parents[level], is_whole[level], rounding_ns
    )
    _subtract_self_time(nesting, parents[level], own)
    sound = ~has_marked_slice[stretches.first]
    _subtract_self_time(nesting, parents[stretches.first][sound], stretches.length[sound])
    inside = has_marked_slice & ~outermost
    nesting.depth[indices[inside]] += (nesting.depth[indices] - before)[piece[inside]]
    opened = np.zeros(indices.size, bool)
    opened[piece[inside & is_crossing]] = True
    nesting.self_time[indices[opened]] = (end - start)[opened]
    left = inside & opened[piece]
    return indices[left], indices[piece[left]]


def _subtract_self_time(nesting: Nesting, parents: Ints, inner_times: Ints) -> None:
    """Subtracts the time covered by inner slices from the self time of their parents."""
    within = parents != NO_SLICE
    np.subtract.at(nesting.self_time, parents[within], inner_times[within])


class _GaplessStretches:
    """Slices in order of start, grouped into time ranges without a gap between the slices."""

    def __init__(self, start: Ints, end: Ints) -> None:
        begins = np.append(True, start[1:] >= np.maximum.accumulate(end)[:-1])[: start.size]
        self._of = np.cumsum(begins) - 1
        self.first = np.flatnonzero(begins)
        """The index of the first slice of each time range."""
        self.length = np.maximum.reduceat(end, self.first) - start[self.first]
        """The duration of each time range, in ns."""

    def has_marked_slice(self, is_marked: Bools) -> Bools:
        """Returns for each slice whether its time range contains a slice flagged in `is_marked`."""
        held = np.bincount(self._of[is_marked], minlength=self.first.size)
        return np.asarray(held[self._of] > 0)


def crosses_no_slice(start: Ints, end: Ints) -> Bools:
    """Flags the slices that cross no other slice.

    Args:
        start: Start of each slice of one track, ascending, shape (n,).
        end: End of each slice, shape (n,).
    """
    by_end = np.argsort(end, kind="stable")
    ends = end[by_end]
    last_end = _extremes_of_ranges(
        np.maximum, end, np.searchsorted(start, start, "right"), np.searchsorted(start, end)
    )
    first_start = _extremes_of_ranges(
        np.minimum, start[by_end], np.searchsorted(ends, start, "right"), np.searchsorted(ends, end)
    )
    return np.asarray((last_end <= end) & (first_start >= start))


def _extremes_of_ranges(ufunc: np.ufunc, values: Ints, first: Ints, end: Ints) -> Ints:
    """Returns the minimum or maximum value in each index range, using a sparse table.

    A range is covered by two overlapping ranges of the greatest power of two within its length;
    only one row of the table is in memory at a time. For an empty range it returns the neutral
    value.
    """
    worst = np.iinfo(np.int64).min if ufunc is np.maximum else np.iinfo(np.int64).max
    found = np.full(first.size, worst, np.int64)
    _, power = np.frexp(np.maximum(end - first, 0).astype(np.float64))  # 0 for an empty range
    order = np.argsort(power.astype(np.uint8), kind="stable")
    bounds = np.searchsorted(power[order], np.arange(1, int(power.max(initial=0)) + 2))
    row, width = values, 1
    for lowest, highest in pairwise(bounds):
        asked = order[lowest:highest]
        found[asked] = ufunc(row[first[asked]], row[end[asked] - width])
        row = ufunc(row[:-width], row[width:])
        width *= 2
    return found


def _outermost_non_crossing_slice(start: Ints, end: Ints, is_whole: Bools) -> Ints:
    """Returns for each slice the outermost non-crossing slice around it, or its own index."""
    places = np.arange(start.size)
    roots = np.flatnonzero(is_whole)
    if not roots.size:
        return places
    roots = roots[
        _GaplessStretches(start[roots], end[roots]).first
    ]  # non-crossing slices do not cross each other
    last = roots[np.maximum(np.searchsorted(roots, places, "right") - 1, 0)]
    return np.where((last <= places) & (start < end[last]), last, places)


def _nest_slices_one_by_one(
    nesting: Nesting, indices: Ints, outer_parents: Ints, is_whole: Bools, rounding_ns: int
) -> Ints:
    """Sets parent and depth of slices one after the other; returns their self times in ns."""
    if not indices.size:
        return indices
    starts, ends = nesting.start[indices].tolist(), nesting.end[indices].tolist()
    order = _clip_rounding_crossings(starts, ends, rounding_ns)
    parents, depths = (np.array(found) for found in _parents_and_depths(order, starts, ends))
    own = np.array(_self_times(order, starts, ends))
    base = np.where(outer_parents == NO_SLICE, 0, nesting.depth[outer_parents] + 1)
    nesting.start[indices], nesting.end[indices] = starts, ends
    nesting.parent[indices] = np.where(parents == NO_SLICE, outer_parents, indices[parents])
    nesting.depth[indices] = depths + base
    nesting.self_time[indices[~is_whole]] = own[
        ~is_whole
    ]  # slices kept as one unit have theirs already
    return own


def _clip_rounding_crossings(starts: list[int], ends: list[int], rounding_ns: int) -> list[int]:
    """Clips slices that cross by up to `rounding_ns`, in place; returns the new order of slices."""
    order = list(range(len(starts)))
    for _ in range(_MAX_CLIPPING_PASSES):
        order.sort(key=lambda i: (starts[i], -ends[i], i))
        if not _clip_crossings_in_one_pass(order, starts, ends, rounding_ns):
            return order
    order.sort(key=lambda i: (starts[i], -ends[i], i))
    return order


def _clip_crossings_in_one_pass(
    order: list[int], starts: list[int], ends: list[int], rounding_ns: int
) -> bool:
    """Clips crossing slices once; returns whether a start moved, which may change their order."""
    moved = False
    open_slices: list[int] = []
    for i in order:
        while open_slices:
            top = open_slices[-1]
            if ends[top] <= starts[i]:
                open_slices.pop()
            elif ends[i] <= ends[top]:
                break
            elif ends[i] - ends[top] <= rounding_ns:
                ends[i] = ends[top]
            elif ends[top] - starts[i] <= rounding_ns:
                ends[top] = starts[i]
            elif 0 < starts[i] - starts[top] <= rounding_ns:
                starts[top] = starts[i]
                moved = True
                open_slices.pop()
            else:
                break
        open_slices.append(i)
    return moved


def _parents_and_depths(
    order: list[int], starts: list[int], ends: list[int]
) -> tuple[list[int], list[int]]:
    """Returns each slice's parent index and depth."""
    parent, depth = [NO_SLICE] * len(order), [0] * len(order)
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


def _self_times(order: list[int], starts: list[int], ends: list[int]) -> list[int]:
    """Returns for how many ns each slice is the last-begun of the open slices: its self time."""
    own = [0] * len(order)
    open_slices: list[int] = []
    now = starts[order[0]]
    for until, opening in [*((starts[i], i) for i in order), (max(ends), NO_SLICE)]:
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
