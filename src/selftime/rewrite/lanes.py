"""Lanes: on one thread slices lie within each other or apart; what crosses goes to another.

Viewers draw the events of a thread as a stack and drop what does not fit. Here each slice goes to
the lane on which it lies within the latest begun, so that what is inside another stays with it.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["lanes"]

Ints = NDArray[np.int64]


def lanes(thread: Ints, start: Ints, end: Ints) -> Ints:
    """The lane of each slice, counted from 0 on its thread.

    Args:
        thread: The thread of each slice, shape (n,).
        start: Begin of each slice in ns, shape (n,).
        end: End of each slice in ns, not before its start, shape (n,).

    >>> at = [np.array(column) for column in ([7, 7, 7, 7], [0, 5, 6, 15], [10, 15, 12, 20])]
    >>> lanes(*at)
    array([0, 1, 1, 0])
    """
    found = np.zeros(thread.size, np.int64)
    order = np.lexsort((-end, start, thread))
    threads, starts, ends = (column[order].tolist() for column in (thread, start, end))
    of_slice, last, opened = [0] * len(threads), None, list[list[tuple[int, int]]]()
    for place, (where, begin, done) in enumerate(zip(threads, starts, ends, strict=True)):
        if where != last:
            last, opened = where, [[]]
        of_slice[place] = _put(opened, begin, done)
    found[order] = of_slice
    return found


def _put(opened: list[list[tuple[int, int]]], begin: int, done: int) -> int:
    """Put a slice on the best of a thread's lanes, each a stack of what is open on it."""
    best, latest = -1, -1
    free = -1
    for lane, stack in enumerate(opened):
        while stack and stack[-1][1] <= begin:
            stack.pop()
        if not stack:
            free = lane if free < 0 else free
        elif done <= stack[-1][1] and stack[-1][0] > latest:
            best, latest = lane, stack[-1][0]
    if best < 0:
        best = free
    if best < 0:
        best = len(opened)
        opened.append([])
    opened[best].append((begin, done))
    return best
