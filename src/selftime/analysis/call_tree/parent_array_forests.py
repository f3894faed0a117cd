"""Forests stored as an array of each node's parent: levels, subtree totals, reading order.

A forest of n nodes is an array of shape (n,) with the index of each node's parent, or -1 for none.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE


def nodes_by_level(parent_of_node: Ints) -> list[Ints]:
    """Returns the node indexes grouped by distance from the roots, roots first.

    >>> nodes_by_level(np.array([-1, 0, 1, -1]))
    [array([0, 3]), array([1]), array([2])]
    """
    depth, above = (parent_of_node != NO_SLICE).astype(np.int64), parent_of_node.copy()
    at = np.flatnonzero(depth)
    while at.size:  # `depth` is the distance to `above`, which doubles each time
        here = above[at]
        depth[at] += depth[here]
        above[at] = here = above[here]
        at = at[here != NO_SLICE]
    return node_indexes_by_depth(depth)


def node_indexes_by_depth(depth_of_node: Ints) -> list[Ints]:
    """Returns the node indexes of each depth, in ascending order of depth."""
    if not depth_of_node.size:
        return []
    counts = np.bincount(depth_of_node)
    return np.split(node_order_by_depth(depth_of_node), np.cumsum(counts[counts > 0])[:-1])


def node_order_by_depth(depth_of_node: Ints) -> Ints:
    """Returns the node indexes sorted by depth; nodes of equal depth keep their order."""
    few = depth_of_node.size and depth_of_node.max() <= np.iinfo(np.uint16).max  # radix sort
    return np.argsort(depth_of_node.astype(np.uint16) if few else depth_of_node, kind="stable")


def subtree_totals_by_level(
    parent_of_node: Ints, node_levels: Sequence[Ints], own_amounts: Ints
) -> Ints:
    """Returns for each node its own amount plus the amounts of all its descendants.

    >>> parent = np.array([-1, 0, 1, 0])
    >>> subtree_totals_by_level(parent, nodes_by_level(parent), np.array([1, 2, 3, 4]))
    array([10,  5,  3,  4])
    """
    total = own_amounts.astype(np.int64)
    if total.any():
        for level in reversed(node_levels[1:]):
            np.add.at(total, parent_of_node[level], total[level])
    return total


def subtree_totals(parent_of_node: Ints, own_amounts: Ints) -> Ints:
    """Returns each node's amount plus its descendants' amounts; nodes must follow parents."""
    total = own_amounts.astype(np.int64)  # a copy
    if total.any():
        for low, high in _node_ranges_without_own_parents(parent_of_node):
            above = parent_of_node[low:high]
            inside = slice(None) if above.min() != NO_SLICE else above != NO_SLICE
            np.add.at(total, above[inside], total[low:high][inside].copy())
    return total


def is_marked_or_has_marked_ancestor(parent_of_node: Ints, is_marked: Flags) -> Flags:
    """Flags nodes that are marked or have a marked ancestor; parents must stand before children."""
    found = is_marked.copy()
    if found.any():
        for low, high in reversed(_node_ranges_without_own_parents(parent_of_node)):
            here = np.flatnonzero(parent_of_node[low:high] != NO_SLICE) + low
            found[here] |= found[parent_of_node[here]]
    return found


def nearest_marked_of_every_node(parent_of_node: Ints, is_marked: Flags) -> Ints:
    """Returns each node's nearest marked node: itself, an ancestor, or -1.

    Parents must stand before children, as for `subtree_totals`.

    >>> nearest_marked_of_every_node(np.array([-1, 0, 1]), np.array([False, True, False]))
    array([-1,  1,  1])
    """
    found = np.where(is_marked, np.arange(is_marked.size), NO_SLICE)
    for low, high in reversed(_node_ranges_without_own_parents(parent_of_node)):
        here = np.flatnonzero(~is_marked[low:high]) + low
        above = parent_of_node[here]
        found[here] = np.where(above == NO_SLICE, NO_SLICE, found[above])
    return found


def _node_ranges_without_own_parents(parent_of_node: Ints) -> list[tuple[int, int]]:
    """Returns (first, end) index ranges in which no node is the parent of another.

    They are returned from the last to the second; the first range has only roots. Nodes after the
    last parent have no children, and so on with the rest. If nodes are in order of depth, a range
    is about one level of the tree.
    """
    last_parent = np.maximum.accumulate(parent_of_node)
    found = []
    high = parent_of_node.size
    while high and last_parent[high - 1] != NO_SLICE:
        low = int(last_parent[high - 1]) + 1
        found.append((low, high))
        high = low
    return found


_MAX_LOOKUP_TABLE_ENTRIES_PER_NODE: Final = 8
"""Largest size of a lookup table of keys, in entries per node, that costs less than sorting."""
_MAX_SMALL_LOOKUP_TABLE_ENTRIES: Final = 1 << 16
"""Largest number of entries for which a lookup table is used whatever the number of nodes."""


def is_outermost_of_key(parent_of_node: Ints, key_of_node: NDArray[Any]) -> Flags:
    """Flags nodes that have no ancestor with the same key, so that totals count recursion once.

    Parents must stand before children. So the ancestors of a node whose parent stands before the
    first node with children of the same key have other keys, and it need not be compared with them.
    """
    inside = np.zeros(parent_of_node.size, bool)
    at = np.flatnonzero(parent_of_node != NO_SLICE)
    above = parent_of_node[at]
    key = key_of_node
    most = max(_MAX_LOOKUP_TABLE_ENTRIES_PER_NODE * key.size, _MAX_SMALL_LOOKUP_TABLE_ENTRIES)
    if not 0 <= key.min(initial=0) <= key.max(initial=0) <= most:
        _, key = np.unique(key, return_inverse=True)
    first = _first_node_with_children_of_each_key(key, above)
    may = above >= first[key[at]]
    at, above = at[may], above[may]
    while at.size:
        same = key[above] == key[at]
        inside[at[same]] = True
        at, above = at[~same], parent_of_node[above[~same]]
        further = above >= first[key[at]]  # a root has the parent -1
        at, above = at[further], above[further]
    return ~inside


def _first_node_with_children_of_each_key(key_of_node: NDArray[Any], parents: Ints) -> Ints:
    """Returns for each key the first of the parents with it; for others a number above all nodes.

    Keys are whole numbers from 0.
    """
    has_children = np.zeros(key_of_node.size, bool)
    has_children[parents] = True
    nodes = np.flatnonzero(has_children)[::-1]
    first = np.full(int(key_of_node.max(initial=0)) + 1, key_of_node.size, np.int64)
    first[key_of_node[nodes]] = nodes  # of several values for one place the last remains
    return first


def node_reading_order(parent_of_node: Ints, weight_of_node: Ints) -> Ints:
    """Returns node indexes in depth-first order, each node's heaviest child first.

    >>> node_reading_order(np.array([-1, 0, 0, 2]), np.array([9, 3, 6, 5]))
    array([0, 2, 3, 1])
    """
    steps = nodes_by_level(parent_of_node)
    size = subtree_totals_by_level(parent_of_node, steps, np.ones(parent_of_node.size, np.int64))
    place = np.zeros(parent_of_node.size, np.int64)
    for here in steps:
        level = here[np.lexsort((here, -weight_of_node[here], parent_of_node[here]))]
        above = parent_of_node[level]
        before = np.cumsum(size[level]) - size[level]
        opens = np.append(True, above[1:] != above[:-1])
        before -= np.repeat(before[opens], np.diff(np.append(np.flatnonzero(opens), level.size)))
        place[level] = before + np.where(above == NO_SLICE, 0, place[above] + 1)
    return np.argsort(place, kind="stable")
