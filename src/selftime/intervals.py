"""Sets of intervals in integer nanoseconds: union, intersection, difference, length.

A set is a pair of int64 arrays `starts, ends`, sorted and disjoint, each interval half open:
`[start, end)`. Shares of time are lengths of such sets, never sums of durations.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selftime.array_types import Ints


class Intervals(NamedTuple):  # noqa: PLW1641 - arrays have no hash
    """Sorted, disjoint, half-open intervals; both arrays have shape (n,) and are in ns."""

    starts: Ints
    """The start of each interval, in ns."""
    ends: Ints
    """The end of each interval in ns; the end itself is not part of the interval."""

    def __eq__(self, other: object) -> bool:
        """Returns whether both hold the same intervals."""
        return isinstance(other, Intervals) and all(map(np.array_equal, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other


def union(starts: ArrayLike, ends: ArrayLike) -> Intervals:
    """Returns the union of the given intervals, which may overlap and be in any order.

    >>> union([0, 5, 3], [4, 6, 5])
    Intervals(starts=array([0]), ends=array([6]))
    """
    first, last = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    real = last > first
    if not real.all():
        first, last = first[real], last[real]
    if not first.size:
        return Intervals(first, last)
    if (first[1:] < first[:-1]).any():
        order = np.argsort(first, kind="stable")
        first, last = first[order], last[order]
    reach = np.maximum.accumulate(last)
    opens = np.append(True, first[1:] > reach[:-1])
    closes = np.append(opens[1:], True)
    return Intervals(first[opens], reach[closes])


def length(intervals: Intervals) -> int:
    """Returns the sum of the lengths of disjoint intervals, in ns."""
    return int((intervals.ends - intervals.starts).sum())


def intersect(first: Intervals, second: Intervals) -> Intervals:
    """Returns the intersection of two sets of intervals.

    >>> intersect(union([0, 10], [5, 20]), union([3], [12]))
    Intervals(starts=array([ 3, 10]), ends=array([ 5, 12]))
    """
    low = np.searchsorted(second.ends, first.starts, side="right")
    high = np.searchsorted(second.starts, first.ends, side="left")
    many = np.maximum(high - low, 0)
    mine = np.repeat(np.arange(first.starts.size), many)
    within = np.arange(mine.size) - np.repeat(np.cumsum(many) - many, many)
    other = np.repeat(low, many) + within
    return Intervals(
        np.maximum(first.starts[mine], second.starts[other]),
        np.minimum(first.ends[mine], second.ends[other]),
    )


def subtract(minuend: Intervals, subtrahend: Intervals) -> Intervals:
    """Returns the first set of intervals without the time that the second one covers.

    >>> subtract(union([0], [10]), union([2, 8], [3, 12]))
    Intervals(starts=array([0, 3]), ends=array([2, 8]))
    """
    if not minuend.starts.size:
        return minuend
    low, high = int(minuend.starts[0]), int(minuend.ends[-1])
    gaps = Intervals(np.append(low, subtrahend.ends), np.append(subtrahend.starts, high))
    real = gaps.ends > gaps.starts
    return intersect(minuend, Intervals(gaps.starts[real], gaps.ends[real]))


def clip(intervals: Intervals, start: int, end: int) -> Intervals:
    """Returns the parts of the intervals that lie within `[start, end)`, both in ns."""
    if end <= start:
        return Intervals(intervals.starts[:0], intervals.ends[:0])
    window = Intervals(np.array([start], np.int64), np.array([end], np.int64))
    return intersect(intervals, window)


def covered_time_before(intervals: Intervals, times: Ints) -> Ints:
    """Returns for each of the m `times` how many ns of the intervals lie before it; shape (m,).

    >>> covered_time_before(union([0, 10], [5, 20]), np.array([3, 7, 12]))
    array([3, 5, 7])
    """
    lengths = np.append(0, np.cumsum(intervals.ends - intervals.starts))
    at = np.searchsorted(intervals.starts, times, side="right")
    if not intervals.starts.size:
        return np.zeros(times.size, np.int64)
    return np.asarray(
        lengths[at] - np.where(at > 0, np.maximum(intervals.ends[at - 1] - times, 0), 0)
    )


class IntervalPieces(NamedTuple):
    """Pieces of intervals, in the order of the intervals and of time; shape (n,), times in ns."""

    of: Ints
    """The index of the interval that each is a piece of."""
    starts: Ints
    ends: Ints
    is_first: NDArray[np.bool_]
    """Whether it is the first piece of its interval."""


def cut_intervals(starts: Ints, ends: Ints, cuts: Ints) -> IntervalPieces:
    """Cuts each interval at the given instants (ascending) that lie within it.

    >>> cut_intervals(np.array([0, 10]), np.array([5, 12]), np.array([0, 3, 4, 7]))[:3]
    (array([0, 0, 0, 1]), array([ 0,  3,  4, 10]), array([ 3,  4,  5, 12]))
    """
    first = np.searchsorted(cuts, starts, side="right")
    many = np.maximum(np.searchsorted(cuts, ends, side="left") - first, 0) + 1
    of = np.repeat(np.arange(starts.size), many)
    within = np.arange(of.size) - np.repeat(np.cumsum(many) - many, many)
    cut = np.append(cuts, 0)[np.minimum(first[of] + within - 1, cuts.size)]
    begin = np.where(within == 0, starts[of], cut)
    is_last = within == many[of] - 1
    until = np.roll(begin, -1)
    until[is_last] = ends[of[is_last]]
    return IntervalPieces(of, begin, until, within == 0)


def order_by_start_and_end(start: Ints, end: Ints, sort_key: Ints) -> Ints:
    """Returns the indexes that sort intervals by start, then end, then sort key."""
    order = np.argsort(start, kind="stable")
    same = np.diff(start[order]) == 0
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[tied]
    order[tied] = rows[np.lexsort((sort_key[rows], end[rows], start[rows]))]
    return order
