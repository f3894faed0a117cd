"""Forests as arrays of parents: levels, totals over descendants, and the order of reading.

A forest of n places is an array of shape (n,) with the place of each one's parent, or NONE.
"""

from collections.abc import Sequence

import numpy as np

from selftime.arrays import Ints
from selftime.nesting import NONE


def levels(parent: Ints) -> list[Ints]:
    """The places by their distance from the roots, nearest first.

    >>> levels(np.array([-1, 0, 1, -1]))
    [array([0, 3]), array([1]), array([2])]
    """
    depth, above = (parent != NONE).astype(np.int64), parent.copy()
    at = np.flatnonzero(depth)
    while at.size:  # `depth` is the way to `above`, twice as far with each turn
        here = above[at]
        depth[at] += depth[here]
        above[at] = here = above[here]
        at = at[here != NONE]
    return by_depth(depth)


def by_depth(depth: Ints) -> list[Ints]:
    """The places of each depth, from the least on."""
    if not depth.size:
        return []
    counts = np.bincount(depth)
    return np.split(outer_first(depth), np.cumsum(counts[counts > 0])[:-1])


def outer_first(depth: Ints) -> Ints:
    """The places in order of their depth, those of one depth as they come."""
    few = depth.size and depth.max() <= np.iinfo(np.uint16).max  # sorted by their digits
    return np.argsort(depth.astype(np.uint16) if few else depth, kind="stable")


def totals(parent: Ints, steps: Sequence[Ints], own: Ints) -> Ints:
    """Own amounts with those of all descendants; `steps` are the forest's levels.

    >>> parent = np.array([-1, 0, 1, 0])
    >>> totals(parent, levels(parent), np.array([1, 2, 3, 4]))
    array([10,  5,  3,  4])
    """
    total = own.astype(np.int64)
    if total.any():
        for level in reversed(steps[1:]):
            np.add.at(total, parent[level], total[level])
    return total


def preorder(parent: Ints, weight: Ints) -> Ints:
    """The places in order of reading: each before what is within it, the heaviest branch first.

    >>> preorder(np.array([-1, 0, 0, 2]), np.array([9, 3, 6, 5]))
    array([0, 2, 3, 1])
    """
    steps = levels(parent)
    size = totals(parent, steps, np.ones(parent.size, np.int64))
    place = np.zeros(parent.size, np.int64)
    for here in steps:
        level = here[np.lexsort((here, -weight[here], parent[here]))]
        above = parent[level]
        before = np.cumsum(size[level]) - size[level]
        opens = np.append(True, above[1:] != above[:-1])
        before -= np.repeat(before[opens], np.diff(np.append(np.flatnonzero(opens), level.size)))
        place[level] = before + np.where(above == NONE, 0, place[above] + 1)
    return np.argsort(place, kind="stable")
