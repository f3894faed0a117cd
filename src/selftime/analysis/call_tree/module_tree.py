"""The tree of a program's nn.Modules, and the module to which each slice of the call tree belongs.

For each call of a module the recorder gives its class and its instance, but not its position in the
model. That is derived from the calls. An instance called within two others is a node in each. A
module that the backward pass calls again to recompute it is the node that it was in the forward
pass. Where there are no frames of modules, Lightning's annotations are used, which have attribute
paths.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.parent_array_forests import nodes_by_level
from selftime.analysis.call_tree.training_passes import RECOMPUTE_PASS, PassTree
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace


class ModuleInstance(NamedTuple):
    """One nn.Module object of the program: class, number and attribute path, as far as recorded."""

    name: str
    kind: str
    """The name of the module's class."""
    number: int | None = None
    """The number of the object among the objects of its class, from 0; None if not recorded."""
    path: str | None = None
    """The module's attribute path in the model, such as `layers.0.linear`; None if unknown."""


@dataclass(frozen=True, slots=True)
class ModuleTree:
    """The tree of nn.Module objects, and the innermost module of each slice of the call tree."""

    instances: list[ModuleInstance]
    """The nn.Module object of each node of this tree."""
    parent: Ints
    """The index of each node's parent in this tree, or -1 if there is none."""
    calls: Ints
    recomputes: Ints
    """How often each node's module was called again within the backward pass, to recompute it."""
    node: Ints
    """For each slice of the call tree: the node of its innermost module, or -1 if there is none;
    shape (n,).
    """

    def module_paths(self) -> list[str]:
        """Returns the path of each module from the root, such as `model.layers.0`."""
        found: list[str] = []
        for instance, above in zip(self.instances, self.parent.tolist(), strict=True):
            below = "" if above == NO_SLICE else f"{found[above]}."
            found.append(instance.path or below + instance.name)
        return found


def module_tree(trace: Trace, tree: PassTree) -> ModuleTree:
    """Returns the tree of nn.Modules, with the innermost module of each slice of the call tree."""
    instance, instances = _module_instances(trace, tree)
    called = instance != NO_SLICE
    holder = _enclosing_module_call_of_entries(tree, called)
    around = _values_at_or_none(holder, tree.parent)
    again = called & (tree.pass_code == RECOMPUTE_PASS)
    node = np.full(instance.size, NO_SLICE, np.int64)
    nodes = _ModuleTreeBuilder()
    for level in _group_entries_by_nesting(around, called & ~again):
        node[level] = nodes.module_nodes_below(
            _values_at_or_none(node, around[level]), instance[level]
        )
    for level in _group_entries_by_nesting(around, again):
        above = around[level]
        inner = (above != NO_SLICE) & again[above]
        for part, place in (
            (level[inner], nodes.module_nodes_below),
            (level[~inner], nodes.forward_module_nodes),
        ):
            node[part] = place(_values_at_or_none(node, around[part]), instance[part])
    count = len(nodes.parent)
    return ModuleTree(
        instances=[instances[which] for which in nodes.instance],
        parent=np.array(nodes.parent, np.int64),
        calls=np.bincount(node[called & ~again], minlength=count),
        recomputes=np.bincount(node[again], minlength=count),
        node=_values_at_or_none(node, holder),
    )


class _ModuleTreeBuilder:
    """Builds the nodes of a module tree: one for each nn.Module object below each parent node."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.instance: list[int] = []
        self._node: dict[tuple[int, int], int] = {}
        self._first: dict[int, int] = {}
        """Maps each module instance to its first node."""

    def module_nodes_below(self, parent_nodes: Ints, instances: Ints) -> Ints:
        """Returns each nn.Module object's node below its given parent node; adds missing nodes."""
        return self._find_node_of_each_pair(parent_nodes, instances, self._module_node_below)

    def forward_module_nodes(self, backward_nodes: Ints, instances: Ints) -> Ints:
        """Returns for each module called in the backward pass the node of its forward call.

        The backward pass of a node within a checkpoint recomputes the whole checkpoint. So the
        instance called again is the node itself, an ancestor of it, or a child of an ancestor.
        """
        return self._find_node_of_each_pair(backward_nodes, instances, self._forward_module_node)

    def _find_node_of_each_pair(
        self, nodes: Ints, instances: Ints, find: Callable[[int, int], int]
    ) -> Ints:
        pairs, which = np.unique(np.stack([nodes, instances]), axis=1, return_inverse=True)
        found = [find(*pair) for pair in pairs.T.tolist()]
        return np.array(found, np.int64)[which]

    def _module_node_below(self, parent_node: int, instance: int) -> int:
        node = self._node.setdefault((parent_node, instance), len(self.parent))
        if node == len(self.parent):
            self.parent.append(parent_node)
            self.instance.append(instance)
            self._first.setdefault(instance, node)
        return node

    def _forward_module_node(self, backward_node: int, instance: int) -> int:
        at = backward_node
        while (at, instance) not in self._node and at != NO_SLICE:
            at = self.parent[at]
        if (at, instance) in self._node:
            return self._node[at, instance]
        if instance in self._first:
            return self._first[instance]
        return self._module_node_below(backward_node, instance)


def _module_instances(trace: Trace, tree: PassTree) -> tuple[Ints, list[ModuleInstance]]:
    """Returns the list of nn.Module objects, and each call tree slice's index in it, or -1."""
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
    instance = np.full(tree.entries.id.size, NO_SLICE, np.int64)
    at = tree.entries.place[found["id"].to_numpy()]
    instance[at[at != NO_SLICE]] = found["place"].to_numpy()[at != NO_SLICE]
    return instance, [
        _parse_module_instance(*row) for row in distinct.cast({"name": pl.String}).iter_rows()
    ]


def _parse_module_instance(name: str, number: int | None) -> ModuleInstance:
    told = names.lightning_module(name)
    if told:
        kind, path = told
        return ModuleInstance(path.rpartition(".")[2], kind, path=path)
    kind = names.module_class(name)
    return ModuleInstance(kind if number is None else f"{kind}_{number}", kind, number)


def _enclosing_module_call_of_entries(tree: PassTree, is_module_call: Flags) -> Ints:
    """Returns each call tree slice's innermost enclosing nn.Module call (or itself), or -1."""
    holder = np.where(is_module_call, np.arange(is_module_call.size), NO_SLICE)
    for level in tree.levels[1:]:
        plain = level[~is_module_call[level]]
        holder[plain] = holder[tree.parent[plain]]
    return holder


def _values_at_or_none(values: Ints, indexes: Ints) -> Ints:
    """Returns the values at the given indexes; -1 where the index is -1."""
    return np.where(indexes == NO_SLICE, NO_SLICE, values[indexes]) if values.size else indexes


def _group_entries_by_nesting(enclosing: Ints, is_selected: Flags) -> list[Ints]:
    """Returns the selected slices' indexes, one array per number of selected ancestors from 0."""
    at = np.flatnonzero(is_selected)
    place = np.full(enclosing.size, NO_SLICE, np.int64)
    place[at] = np.arange(at.size)
    return [at[level] for level in nodes_by_level(_values_at_or_none(place, enclosing[at]))]
