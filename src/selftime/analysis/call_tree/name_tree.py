"""Trees of slices folded to trees of names: what lies within equal names, in equal order, is one.

That is what a flame graph draws. Small nodes can be joined to one `(other)` below their parent, so
that totals stay whole.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime.analysis.call_tree.forest import levels, totals
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE, nearest

OTHER = NONE
"""The code of nodes that stand for those which were too small."""


@dataclass(frozen=True, slots=True)
class Folded:
    """The nodes; arrays of shape (k,), parents before children."""

    parent: Ints
    """The place of the node around each, or NONE."""
    code: Ints
    """What the node is called, or OTHER."""
    own: Ints
    """What it has itself."""
    total: Ints
    """What it has with all within."""
    count: Ints
    """How many slices it stands for."""


def without(parent: Ints, dropped: Flags) -> Ints:
    """Parents in a forest of which some places are left out: the nearest that are not."""
    return nearest(parent, ~dropped, parent) if dropped.any() else parent


def fold(parent: Ints, code: Ints, own: Ints, count: Ints) -> Folded:
    """Join the places that have the same code and are within the same node.

    Args:
        parent: A forest, shape (n,).
        code: What each place is called, not negative, shape (n,).
        own: What each place has itself, shape (n,).
        count: How many slices each place stands for, shape (n,).
    """
    nodes = joined(parent, code)
    sums = [np.zeros(nodes.code.size, np.int64) for _ in range(2)]
    for amount, much in zip(sums, (own, count), strict=True):
        np.add.at(amount, nodes.node, much)
    total = totals(nodes.parent, levels(nodes.parent), sums[0])
    return Folded(nodes.parent, nodes.code, sums[0], total, sums[1])


@dataclass(frozen=True, slots=True)
class Nodes:
    """Places joined to nodes, parents before children."""

    parent: Ints
    """The node around each node, or NONE, shape (k,)."""
    code: Ints
    """What it is called, shape (k,)."""
    node: Ints
    """Of each place, shape (n,)."""


def joined(parent: Ints, code: Ints) -> Nodes:
    """Join the places that have the same code and are within the same node; arguments of `fold`."""
    node = np.full(parent.size, NONE, np.int64)
    codes, above = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    first, size = NONE, 0
    kinds = int(code.max(initial=0)) + 1
    for level in levels(parent):
        around = parent[level]
        outer = np.where(around == NONE, NONE, node[around])
        keys, which = _distinct((outer - first) * kinds + code[level])
        node[level] = which + size
        codes.append(keys % kinds)
        above.append(keys // kinds + first)
        first, size = size, size + keys.size
    return Nodes(np.concatenate(above), np.concatenate(codes), node)


def _distinct(keys: Ints) -> tuple[Ints, Ints]:
    """The distinct keys, which are not negative, in order; and for each key which of them it is."""
    most = int(keys.max(initial=0))
    if most > _MOST * max(keys.size, _MOST):
        return np.unique(keys, return_inverse=True)
    known = np.zeros(most + 1, bool)
    known[keys] = True
    return np.flatnonzero(known), (np.cumsum(known) - 1)[keys]


_MOST: Final = 8
"""So many possible keys to each that there is are looked up rather than sorted."""


def pruned(tree: Folded, *, least: float, top: int = 0) -> Folded:
    """The nodes that have something and at least `least`, at most `top` of them (0: all).

    The others of one parent are joined to a node of their own with the code OTHER.
    """
    shown = (tree.total >= least) & (tree.total > 0)
    if top and np.count_nonzero(shown) > top:
        order = np.argsort(-tree.total, kind="stable")  # of equal ones the parent stands first
        shown[order[top:]] = False
    if shown.all():
        return tree
    kept = np.flatnonzero(shown)
    place = np.full(shown.size, NONE, np.int64)
    place[kept] = np.arange(kept.size)
    small = np.flatnonzero(~shown & (tree.total > 0))
    small = small[(tree.parent[small] == NONE) | shown[tree.parent[small]]]
    around, which = np.unique(tree.parent[small], return_inverse=True)
    total, count = (np.zeros(around.size, np.int64) for _ in range(2))
    np.add.at(total, which, tree.total[small])
    np.add.at(count, which, tree.count[small])
    parent = np.append(tree.parent[kept], around)
    return Folded(
        parent=np.where(parent == NONE, NONE, place[parent]),
        code=np.append(tree.code[kept], np.full(around.size, OTHER)),
        own=np.append(tree.own[kept], total),
        total=np.append(tree.total[kept], total),
        count=np.append(tree.count[kept], count),
    )
