"""Folds trees of slices into trees of names: slices with the same path of names become one node.

A flame graph draws such a tree. Small nodes can be replaced by one node `(other)` below their
parent, so that totals stay complete.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime.analysis.call_tree.parent_array_forests import nodes_by_level, subtree_totals
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE, nearest_ancestor

CODE_OF_OTHER_NODE = NO_SLICE
"""The name code of nodes that stand for several nodes that were too small to show."""


@dataclass(frozen=True, slots=True)
class NameTree:
    """A tree in which a node stands for all slices with one path of names; arrays of shape (k,)."""

    parent: Ints
    """The index of each node's parent, or -1 if there is none."""
    code: Ints
    """The code of each node's name, or CODE_OF_OTHER_NODE."""
    own: Ints
    """The amount of each node without its descendants, such as its self time in ns."""
    total: Ints
    """The amount of each node together with all its descendants, in the unit of `own`."""
    count: Ints
    """The number of slices that each node stands for."""


def parents_without_dropped_nodes(parent_of_node: Ints, is_dropped: Flags) -> Ints:
    """Returns each node's nearest ancestor that is not dropped, or -1 if there is none."""
    return (
        nearest_ancestor(parent_of_node, ~is_dropped, parent_of_node)
        if is_dropped.any()
        else parent_of_node
    )


def fold_slices_by_name(
    parent_of_slice: Ints, name_code_of_slice: Ints, own_amount_of_slice: Ints, count_of_slice: Ints
) -> NameTree:
    """Returns a tree of names, in which slices with the same path of names are one node.

    Args:
        parent_of_slice: A forest of slices, shape (n,).
        name_code_of_slice: The code of each slice's name, not negative, shape (n,).
        own_amount_of_slice: The own amount of each slice, shape (n,).
        count_of_slice: The number that each slice adds to the count of its node, shape (n,).
    """
    nodes = merge_equal_siblings(parent_of_slice, name_code_of_slice)
    sums = [np.zeros(nodes.code.size, np.int64) for _ in range(2)]
    for amount, much in zip(sums, (own_amount_of_slice, count_of_slice), strict=True):
        np.add.at(amount, nodes.node, much)
    total = subtree_totals(nodes.parent, sums[0])
    return NameTree(nodes.parent, nodes.code, sums[0], total, sums[1])


@dataclass(frozen=True, slots=True)
class MergedSiblingNodes:
    """Nodes made by merging equal sibling slices (parents first), and the node of each slice."""

    parent: Ints
    """The index of each node's parent, or -1 if there is none, shape (k,)."""
    code: Ints
    """The code of each node's name, shape (k,)."""
    node: Ints
    """The node of each slice, shape (n,)."""


def merge_equal_siblings(parent_of_slice: Ints, code_of_slice: Ints) -> MergedSiblingNodes:
    """Merges slices that have the same code and the same parent node; returns the merged nodes."""
    node = np.full(parent_of_slice.size, NO_SLICE, np.int64)
    codes, above = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    first, size = NO_SLICE, 0
    kinds = int(code_of_slice.max(initial=0)) + 1
    for level in nodes_by_level(parent_of_slice):
        around = parent_of_slice[level]
        outer = np.where(around == NO_SLICE, NO_SLICE, node[around])
        keys, which = _distinct_keys_and_index((outer - first) * kinds + code_of_slice[level])
        node[level] = which + size
        codes.append(keys % kinds)
        above.append(keys // kinds + first)
        first, size = size, size + keys.size
    return MergedSiblingNodes(np.concatenate(above), np.concatenate(codes), node)


def _distinct_keys_and_index(keys: Ints) -> tuple[Ints, Ints]:
    """Returns the sorted distinct keys, and each key's index among these; no key is negative."""
    most = int(keys.max(initial=0))
    if most > _MAX_LOOKUP_TABLE_ENTRIES_PER_KEY * max(keys.size, _MAX_LOOKUP_TABLE_ENTRIES_PER_KEY):
        return np.unique(keys, return_inverse=True)
    known = np.zeros(most + 1, bool)
    known[keys] = True
    return np.flatnonzero(known), (np.cumsum(known) - 1)[keys]


_MAX_LOOKUP_TABLE_ENTRIES_PER_KEY: Final = 8
"""Largest table size per key at which distinct keys are found with a lookup table, not by sorting.
"""


def is_node_shown(total_of_node: Ints, *, min_total: float, max_nodes: int = 0) -> Flags:
    """Flags nodes with a total above 0 and at least `min_total`, at most `max_nodes` (0: all).

    Of a tree whose parents come first a shown node's parent is shown too.
    """
    shown = (total_of_node >= min_total) & (total_of_node > 0)
    if max_nodes and np.count_nonzero(shown) > max_nodes:
        order = np.argsort(-total_of_node, kind="stable")  # of equal totals the parent comes first
        shown[order[max_nodes:]] = False
    return shown


def merge_small_nodes(tree: NameTree, *, min_total: float, max_nodes: int = 0) -> NameTree:
    """Returns the tree with the small children of each parent merged into one node `(other)`.

    Kept are nodes with a total above 0 and at least `min_total`, at most `max_nodes` (0 keeps all).

    The removed children of each parent are merged into one node with the code CODE_OF_OTHER_NODE.
    """
    shown = is_node_shown(tree.total, min_total=min_total, max_nodes=max_nodes)
    if shown.all():
        return tree
    kept = np.flatnonzero(shown)
    place = np.full(shown.size, NO_SLICE, np.int64)
    place[kept] = np.arange(kept.size)
    small = np.flatnonzero(~shown & (tree.total > 0))
    small = small[(tree.parent[small] == NO_SLICE) | shown[tree.parent[small]]]
    around, which = np.unique(tree.parent[small], return_inverse=True)
    total, count = (np.zeros(around.size, np.int64) for _ in range(2))
    np.add.at(total, which, tree.total[small])
    np.add.at(count, which, tree.count[small])
    parent = np.append(tree.parent[kept], around)
    return NameTree(
        parent=np.where(parent == NO_SLICE, NO_SLICE, place[parent]),
        code=np.append(tree.code[kept], np.full(around.size, CODE_OF_OTHER_NODE)),
        own=np.append(tree.own[kept], total),
        total=np.append(tree.total[kept], total),
        count=np.append(tree.count[kept], count),
    )
