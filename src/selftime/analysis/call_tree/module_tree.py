"""The tree of a program's nn.Modules, and which of its nodes everything belongs to.

The recorder tells of each call of a module its class and which instance it is, not where it hangs
in the model: that is rebuilt from the calls. An instance called within two others is a node in
each. What the backward pass calls anew, to recompute it, is the node that it was in forward.
Where there are no frames of modules, Lightning's annotations tell them, with attribute paths.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.forest import levels
from selftime.analysis.call_tree.passes import RECOMPUTE, Passes
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE
from selftime.trace import Trace


class Instance(NamedTuple):
    """A module as its calls tell it."""

    name: str
    kind: str
    """Its class."""
    number: int | None = None
    """Which of its class, from 0."""
    path: str | None = None
    """The attributes that lead to it, where they are told."""


@dataclass(frozen=True, slots=True)
class ModuleTree:
    """The nodes, parents before children, and what belongs to them."""

    instances: list[Instance]
    """What each node is."""
    parent: Ints
    """The node around each, or NONE."""
    calls: Ints
    recomputes: Ints
    """Calls within the backward pass."""
    node: Ints
    """For each entry of the account its innermost node, or NONE; shape (n,)."""

    def paths(self) -> list[str]:
        """The way to each node from the root."""
        found: list[str] = []
        for instance, above in zip(self.instances, self.parent.tolist(), strict=True):
            below = "" if above == NONE else f"{found[above]}."
            found.append(instance.path or below + instance.name)
        return found


def module_tree(trace: Trace, tree: Passes) -> ModuleTree:
    """Find the nodes, and the node of every entry."""
    instance, instances = _instances(trace, tree)
    called = instance != NONE
    holder = _holders(tree, called)
    around = _looked_up(holder, tree.parent)
    again = called & (tree.running == RECOMPUTE)
    node = np.full(instance.size, NONE, np.int64)
    nodes = _Nodes()
    for level in _by_nesting(around, called & ~again):
        node[level] = nodes.below(_looked_up(node, around[level]), instance[level])
    for level in _by_nesting(around, again):
        above = around[level]
        inner = (above != NONE) & again[above]
        for part, place in ((level[inner], nodes.below), (level[~inner], nodes.before)):
            node[part] = place(_looked_up(node, around[part]), instance[part])
    count = len(nodes.parent)
    return ModuleTree(
        instances=[instances[which] for which in nodes.instance],
        parent=np.array(nodes.parent, np.int64),
        calls=np.bincount(node[called & ~again], minlength=count),
        recomputes=np.bincount(node[again], minlength=count),
        node=_looked_up(node, holder),
    )


class _Nodes:
    """The nodes found so far, by the node around each and the instance that it is."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.instance: list[int] = []
        self._node: dict[tuple[int, int], int] = {}
        self._first: dict[int, int] = {}
        """The first node of each instance."""

    def below(self, above: Ints, instance: Ints) -> Ints:
        """The nodes of instances called within these nodes; new ones where there are none yet."""
        return self._each(above, instance, self._below)

    def before(self, above: Ints, instance: Ints) -> Ints:
        """The nodes that instances recomputed by these nodes were in forward.

        The backward pass of a node within a checkpoint recomputes the whole checkpoint: what is
        called anew is the node itself, one around it, or a child of one around it.
        """
        return self._each(above, instance, self._before)

    def _each(self, above: Ints, instance: Ints, find: Callable[[int, int], int]) -> Ints:
        pairs, which = np.unique(np.stack([above, instance]), axis=1, return_inverse=True)
        found = [find(*pair) for pair in pairs.T.tolist()]
        return np.array(found, np.int64)[which]

    def _below(self, above: int, instance: int) -> int:
        node = self._node.setdefault((above, instance), len(self.parent))
        if node == len(self.parent):
            self.parent.append(above)
            self.instance.append(instance)
            self._first.setdefault(instance, node)
        return node

    def _before(self, above: int, instance: int) -> int:
        at = above
        while (at, instance) not in self._node and at != NONE:
            at = self.parent[at]
        if (at, instance) in self._node:
            return self._node[at, instance]
        if instance in self._first:
            return self._first[instance]
        return self._below(above, instance)


def _instances(trace: Trace, tree: Passes) -> tuple[Ints, list[Instance]]:
    """For each entry that is a call of a module its place in the list of instances, or NONE."""
    calls = trace.frame_args.select("id", "module_id").drop_nulls()
    if not calls.height:
        marks = filter_by_name(
            slices_on(trace, "host"), lambda name: bool(names.lightning_module(name))
        )
        calls = marks.select("id", module_id=pl.lit(None, pl.Int64))
    calls = calls.with_columns(name=trace.slices["name"].gather(calls["id"]))
    distinct = calls.select("name", "module_id").unique(maintain_order=True)
    place = distinct.with_row_index("place")
    found = calls.join(place, on=["name", "module_id"], how="left", nulls_equal=True)
    instance = np.full(tree.entries.id.size, NONE, np.int64)
    at = tree.entries.place[found["id"].to_numpy()]
    instance[at[at != NONE]] = found["place"].to_numpy()[at != NONE]
    return instance, [_read(*row) for row in distinct.cast({"name": pl.String}).iter_rows()]


def _read(name: str, number: int | None) -> Instance:
    told = names.lightning_module(name)
    if told:
        kind, path = told
        return Instance(path.rpartition(".")[2], kind, path=path)
    kind = names.module_of(name)
    return Instance(kind if number is None else f"{kind}_{number}", kind, number)


def _holders(tree: Passes, called: Flags) -> Ints:
    """For each entry itself or the nearest that it belongs to that is a call, or NONE."""
    holder = np.where(called, np.arange(called.size), NONE)
    for level in tree.levels[1:]:
        plain = level[~called[level]]
        holder[plain] = holder[tree.parent[plain]]
    return holder


def _looked_up(values: Ints, at: Ints) -> Ints:
    """The values at these places; NONE for NONE."""
    return np.where(at == NONE, NONE, values[at]) if values.size else at


def _by_nesting(around: Ints, chosen: Flags) -> list[Ints]:
    """The chosen entries by how many others of them are around each, outermost first."""
    at = np.flatnonzero(chosen)
    place = np.full(around.size, NONE, np.int64)
    place[at] = np.arange(at.size)
    return [at[level] for level in levels(_looked_up(place, around[at]))]
