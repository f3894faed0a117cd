"""Keeps the slices of a call tree in the order in which they began, each a node of its own.

Slices that are too small to show are merged with those beside them that are too small as well: one
node `(other)` for each row of them, where the first began, so that totals stay complete.
"""

from typing import NamedTuple

import numpy as np

from selftime.analysis.call_tree.call_tree import CallTree
from selftime.analysis.call_tree.name_tree import CODE_OF_OTHER_NODE, NameTree, is_node_shown
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE


class TimeOrderedTree(NamedTuple):
    """A tree of slices, in which those that are too small to show are merged."""

    tree: NameTree
    first: Ints
    """The first slice of each node, as its place among the slices, shape (k,)."""


def own_times_in_window(
    entries: CallTree, place: Ints, parent: Ints, own: Ints, window: tuple[int, int]
) -> Ints:
    """Returns the own time of each node between two instants (ns), shape (n,).

    Args:
        entries: The call tree.
        place: The index of each node in the call tree, shape (n,).
        parent: The index of each node's parent among the nodes, or -1, shape (n,).
        own: The time of each node without its children, in ns, shape (n,).
        window: The first and the last instant.
    """
    first, last = window
    start, end = entries.start[place], entries.end[place]
    within = np.maximum(np.minimum(end, last) - np.maximum(start, first), 0)
    within[entries.is_cross_thread[place]] = 0
    rest = within.copy()
    child = np.flatnonzero(parent != NO_SLICE)
    np.subtract.at(rest, parent[child], within[child])
    is_cut = (start < first) | (end > last)
    return np.where(is_cut, np.maximum(rest, 0), own)


def merge_small_neighbours(
    tree: NameTree, start: Ints, thread: Ints, *, min_total: float, max_nodes: int = 0
) -> TimeOrderedTree:
    """Returns the tree with small slices that follow each other merged into one node `(other)`.

    The nodes are in order of their parents, threads and starts. Kept are those with a total above 0
    and at least `min_total`, at most `max_nodes` (0 keeps all).

    Args:
        tree: The tree in which each slice is a node, shape (n,).
        start: When each slice began, in ns, shape (n,).
        thread: The number of each slice's thread, shape (n,).
        min_total: The smallest total of a node of its own.
        max_nodes: The largest number of nodes of their own; 0 keeps all.
    """
    shown = is_node_shown(tree.total, min_total=min_total, max_nodes=max_nodes)
    is_inner = tree.parent != NO_SLICE
    listed = tree.total > 0
    listed[is_inner] &= shown[tree.parent[is_inner]]
    at = np.flatnonzero(listed)
    at = at[np.lexsort((at, start[at], thread[at], tree.parent[at]))]
    begins = np.ones(at.size, bool)
    if at.size:
        beside = tree.parent[at[1:]] == tree.parent[at[:-1]]
        beside &= thread[at[1:]] == thread[at[:-1]]
        begins[1:] = ~(beside & ~shown[at[1:]] & ~shown[at[:-1]])
    group, first = np.cumsum(begins) - 1, at[begins]
    place = np.full(tree.total.size, NO_SLICE, np.int64)
    place[at] = group
    total, count, own = (np.zeros(first.size, np.int64) for _ in range(3))
    np.add.at(total, group, tree.total[at])
    np.add.at(count, group, tree.count[at])
    np.add.at(own, group, np.where(shown[at], tree.own[at], tree.total[at]))
    above = tree.parent[first]
    merged = NameTree(
        parent=np.where(above == NO_SLICE, NO_SLICE, place[above]),
        code=np.where(shown[first], tree.code[first], CODE_OF_OTHER_NODE),
        own=own,
        total=total,
        count=count,
    )
    return TimeOrderedTree(merged, first)
