"""Rearranges a tree of names: bottom up, as callers and callees of some names, or flat.

All of them are made of the tree with every node: after small nodes are merged to `(other)` it is no
longer known what these were called from. Sums are exact. Where a name recurs within itself, its
total time counts once, at its outermost node, as in other viewers of call trees.
"""

import numpy as np

from selftime.analysis.call_tree.name_tree import (
    CODE_OF_OTHER_NODE,
    NameTree,
    fold_slices_by_name,
    is_node_shown,
)
from selftime.analysis.call_tree.parent_array_forests import (
    is_marked_or_has_marked_ancestor,
    is_outermost_of_key,
)
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE


def bottom_up(tree: NameTree, *, min_total: float) -> NameTree:
    """Returns the tree from the leaves on: a root for each name, its callers below it.

    The total of a root is the own amount of its name, and that of a caller the part of it that was
    called through the path to the root. The own amount is the part that has no further caller. The
    callers of a node with a total below `min_total` are left out.
    """
    own_of_name = _sums(tree.code, tree.own, _code_count(tree))
    at = np.flatnonzero((own_of_name > 0)[tree.code])
    return _callers_of_nodes(tree, at, tree.own[at], min_total)


def callers(tree: NameTree, is_asked_name: Flags, *, min_total: float) -> NameTree:
    """Returns the tree of what some names were called from: each a root, its callers below it.

    The total of a root is that of its name, and that of a caller the part of it that was called
    through the path to the root. The callers of a node below `min_total` are left out.

    Args:
        tree: The tree of names.
        is_asked_name: For each code of the tree whether it is one of the names.
        min_total: The total below which a node's callers are left out.
    """
    at = np.flatnonzero(_is_outermost_of_names(tree, is_asked_name))
    return _callers_of_nodes(tree, at, tree.total[at], min_total)


def callees(tree: NameTree, is_asked_name: Flags) -> NameTree:
    """Returns the tree of what some names called: each a root, with all that is below it.

    Args:
        tree: The tree of names.
        is_asked_name: For each code of the tree whether it is one of the names.
    """
    outermost = _is_outermost_of_names(tree, is_asked_name)
    kept = np.flatnonzero(is_marked_or_has_marked_ancestor(tree.parent, outermost))
    place = np.full(tree.code.size, NO_SLICE, np.int64)
    place[kept] = np.arange(kept.size)
    is_root = outermost[kept] | (tree.parent[kept] == NO_SLICE)
    parent = np.where(is_root, NO_SLICE, place[tree.parent[kept]])
    return fold_slices_by_name(parent, tree.code[kept], tree.own[kept], tree.count[kept])


def flat(tree: NameTree, *, min_total: float, max_names: int = 0) -> NameTree:
    """Returns the flat profile: a root for each name, and no other nodes.

    The total of a name is the amount of all nodes of the name and below it, each counted once; so
    totals overlap. Names with a total below `min_total` are one, as are all but the `max_names`
    with the largest totals (0 keeps all).
    """
    size = _code_count(tree)
    once = is_outermost_of_key(tree.parent, tree.code)
    total = _sums(tree.code[once], tree.total[once], size)
    own, count = (_sums(tree.code, amount, size) for amount in (tree.own, tree.count))
    shown = is_node_shown(total, min_total=min_total, max_nodes=max_names)
    code, small = np.flatnonzero(shown), ~shown & (total > 0)
    columns = [own[code], total[code], count[code]]
    if small.any():
        whole = tree.total[_is_outermost_of_names(tree, small)].sum()
        rest = (own[small].sum(), whole, count[small].sum())
        columns = [np.append(column, much) for column, much in zip(columns, rest, strict=True)]
        code = np.append(code, CODE_OF_OTHER_NODE)
    return NameTree(np.full(code.size, NO_SLICE, np.int64), code, *columns)


def _callers_of_nodes(tree: NameTree, at: Ints, amount: Ints, min_total: float) -> NameTree:
    """Returns the tree of the callers of nodes, level by level from these nodes on.

    Args:
        tree: The tree of names.
        at: The nodes to begin with, shape (m,).
        amount: What each of them counts for, shape (m,).
        min_total: The total below which a node's callers are left out.
    """
    kinds, size, before = _code_count(tree), 0, NO_SLICE
    count, inner = tree.count[at], np.full(at.size, NO_SLICE, np.int64)
    parents, codes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    totals, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    while at.size:
        keys, which = np.unique((inner - before) * kinds + tree.code[at], return_inverse=True)
        parents.append(keys // kinds + before)
        codes.append(keys % kinds)
        totals.append(_sums(which, amount, keys.size))
        counts.append(_sums(which, count, keys.size))
        above = tree.parent[at]
        is_wanted = (totals[-1] >= min_total) & (totals[-1] > 0)
        further = (above != NO_SLICE) & is_wanted[which]
        at, amount, count = above[further], amount[further], count[further]
        inner, before, size = which[further] + size, size, size + keys.size
    parent, total = np.concatenate(parents), np.concatenate(totals)
    inside = parent != NO_SLICE
    own = total - _sums(parent[inside], total[inside], total.size)
    return NameTree(parent, np.concatenate(codes), own, total, np.concatenate(counts))


def _is_outermost_of_names(tree: NameTree, is_asked_name: Flags) -> Flags:
    """Flags nodes with one of the names that are not within another such node."""
    asked = is_asked_name[tree.code]
    found = asked.copy()
    inside = np.flatnonzero(asked & (tree.parent != NO_SLICE))
    covered = is_marked_or_has_marked_ancestor(tree.parent, asked)
    found[inside] = ~covered[tree.parent[inside]]
    return found


def _code_count(tree: NameTree) -> int:
    return int(tree.code.max(initial=-1)) + 1


def _sums(place: Ints, amounts: Ints, size: int) -> Ints:
    """Returns for each place the sum of the amounts at it; integers, so that it is exact."""
    total = np.zeros(size, np.int64)
    np.add.at(total, place, amounts)
    return total
