"""Sets of intervals in integer nanoseconds: union, intersection, difference, length.

A set is a pair of int64 arrays `starts, ends`, sorted and disjoint, each interval half open:
`[start, end)`. Shares of time are lengths of such sets, never sums of durations.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from selftime.arrays import Ints


class Intervals(NamedTuple):
    """Sorted, disjoint, half-open intervals; both arrays have shape (n,) and hold ns."""

    starts: Ints
    ends: Ints


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


def length(these: Intervals) -> int:
    """Returns the total time covered, in ns."""
    return int((these.ends - these.starts).sum())


def intersect(these: Intervals, those: Intervals) -> Intervals:
    """Returns the time covered by both sets.

    >>> intersect(union([0, 10], [5, 20]), union([3], [12]))
    Intervals(starts=array([ 3, 10]), ends=array([ 5, 12]))
    """
    low = np.searchsorted(those.ends, these.starts, side="right")
    high = np.searchsorted(those.starts, these.ends, side="left")
    many = np.maximum(high - low, 0)
    mine = np.repeat(np.arange(these.starts.size), many)
    within = np.arange(mine.size) - np.repeat(np.cumsum(many) - many, many)
    other = np.repeat(low, many) + within
    return Intervals(
        np.maximum(these.starts[mine], those.starts[other]),
        np.minimum(these.ends[mine], those.ends[other]),
    )


def subtract(these: Intervals, those: Intervals) -> Intervals:
    """Returns the time covered by the first set and not by the second.

    >>> subtract(union([0], [10]), union([2, 8], [3, 12]))
    Intervals(starts=array([0, 3]), ends=array([2, 8]))
    """
    if not these.starts.size:
        return these
    low, high = int(these.starts[0]), int(these.ends[-1])
    gaps = Intervals(np.append(low, those.ends), np.append(those.starts, high))
    real = gaps.ends > gaps.starts
    return intersect(these, Intervals(gaps.starts[real], gaps.ends[real]))


def clip(these: Intervals, start: int, end: int) -> Intervals:
    """Returns the part of the set within `[start, end)`."""
    if end <= start:
        return Intervals(these.starts[:0], these.ends[:0])
    window = Intervals(np.array([start], np.int64), np.array([end], np.int64))
    return intersect(these, window)


def before(these: Intervals, when: Ints) -> Ints:
    """Returns how much of the set lies before each time, in ns, shape (m,).

    >>> before(union([0, 10], [5, 20]), np.array([3, 7, 12]))
    array([3, 5, 7])
    """
    lengths = np.append(0, np.cumsum(these.ends - these.starts))
    at = np.searchsorted(these.starts, when, side="right")
    if not these.starts.size:
        return np.zeros(when.size, np.int64)
    return np.asarray(lengths[at] - np.where(at > 0, np.maximum(these.ends[at - 1] - when, 0), 0))
