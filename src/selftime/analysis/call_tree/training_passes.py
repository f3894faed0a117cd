"""Finds whether work is forward, backward, or recomputed forward work in the backward pass.

A backward operator belongs to the forward operator whose gradient it computes: here it is moved
under that operator, on whichever thread it ran. Nodes that accumulate the gradients of parameters
belong to no forward operator, because whole buckets of gradients are reduced inside them. They are
moved under the Python frame that called `backward`, where that is known: see
`line_owner_of_every_slice`.

Work that is recomputed in the backward pass (activation checkpointing) is recognised by something
that only forward work has: inside a backward operator, an operator that autograd numbers, or the
frame of a module. Autograd numbers the operators of a backward pass too if that is to be derived
again (`create_graph=True`). So they count only where something shows checkpointing: a node or a
frame of it, or, where no frames are recorded, most nodes of the pass without any such operator, and
most of these operators without a gradient.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.call_tree import CallTree, call_tree
from selftime.analysis.call_tree.parent_array_forests import (
    node_indexes_by_depth,
    nodes_by_level,
    subtree_totals_by_level,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_ancestors import nearest_ancestor_of_every_slice
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.source_line_owners import line_owner_of_every_slice
from selftime.array_types import Flags, Ints
from selftime.intervals import union
from selftime.names.tensor_operators import (
    is_checkpoint_call,
    is_checkpoint_node,
    is_checkpoint_overhead,
)
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

FORWARD_PASS: Final = 0
"""Code of the forward pass, and of data loading, optimizers and work without gradients."""
BACKWARD_PASS: Final = 1
"""Code of the backward pass."""
RECOMPUTE_PASS: Final = 2
"""Code of forward work that the backward pass computes again (activation checkpointing)."""


@dataclass(frozen=True, slots=True)
class PassTree:
    """The call tree with backward operators moved under their forward operators.

    Arrays have one element for each entry of the call tree, in its order, and are shared and
    read-only.
    """

    entries: CallTree
    """The call tree before any operator was moved."""
    parent: Ints
    """The index of each slice's parent after the move, or -1 if there is none."""
    pass_code: NDArray[np.int8]
    """The training pass in which each slice ran: FORWARD_PASS, BACKWARD_PASS or RECOMPUTE_PASS."""
    levels: tuple[Ints, ...]
    """Indexes of this tree's slices in one array per depth, roots first."""

    def subtree_total(self, own: Ints) -> Ints:
        """Returns for each slice the sum of the amounts of the slice and all its descendants."""
        return subtree_totals_by_level(self.parent, self.levels, own)


@cached_per_trace
def find_training_passes(trace: Trace) -> PassTree:
    """Returns the call tree with each slice's training pass, and backward operators moved."""
    entries = call_tree(trace)
    backward = _is_backward_operator_entry(trace, entries)
    parent, found = entries.parent, node_indexes_by_depth(entries.depth)
    running = np.zeros(entries.id.size, np.int8)
    if backward.any():
        parent = _parents_under_forward_operators(trace, entries, backward)
        running = _pass_codes_of_entries(trace, entries, backward)
        if (parent != entries.parent).any():
            found = nodes_by_level(parent)
    running.flags.writeable = False
    for array in (parent, *found):
        array.flags.writeable = False
    return PassTree(entries, parent, running, tuple(found))


def may_recompute_forward_work(trace: Trace) -> bool:
    """Returns whether operators of the forward pass ran inside operators of the backward pass.

    Where this is false, `find_training_passes` finds nothing recomputed and need not be called.
    """
    forward = _forward_only_slice_ids(trace).to_numpy()
    if not forward.size:
        return False
    backward = _backward_operator_slice_ids(trace).to_numpy()
    thread = trace.tracks["thread"].gather(trace.slices["track"]).to_numpy()
    start = trace.slices["start"].to_numpy()
    end = start + trace.slices["duration"].fill_null(0).to_numpy()
    for number in np.unique(thread[backward]):
        around = backward[thread[backward] == number]
        times = union(start[around], np.maximum(end[around], start[around] + 1))
        mine = forward[thread[forward] == number]
        at = np.searchsorted(times.starts, end[mine], side="right") - 1
        if ((at >= 0) & (times.ends[at] >= start[mine])).any():
            return True
    return False


def _is_backward_operator_entry(trace: Trace, entries: CallTree) -> Flags:
    """Flags call tree slices that are operators of the backward pass."""
    return _is_entry_of_slices(entries, _backward_operator_slice_ids(trace))


def _backward_operator_slice_ids(trace: Trace) -> pl.Series:
    told = (pl.col("forward_thread") > 0) | pl.col("forward").is_not_null()
    named = (names.is_backward_node, names.accumulates_gradient)
    ids = [filter_by_name(trace.slices, means)["id"] for means in named]
    return pl.concat([trace.op_args.select(pl.col("id").filter(told))["id"], *ids])


def _forward_only_slice_ids(trace: Trace) -> pl.Series:
    """Returns ids of slices that only forward work has: nn.Module calls and numbered operators."""
    numbered = (pl.col("sequence") >= 0) & (pl.col("forward_thread") == 0)
    modules = trace.frame_args.select("id", "module_id").drop_nulls()["id"]
    if not _shows_checkpointing(trace):
        return modules
    return pl.concat([trace.op_args.select(pl.col("id").filter(numbered))["id"], modules])


@cached_per_trace
def _shows_checkpointing(trace: Trace) -> bool:
    """Returns whether numbered operators in the backward pass can be recomputed forward work."""
    if filter_by_name(trace.slices, is_checkpoint_node).height:
        return True
    if trace.frame_args.height:
        return any(
            filter_by_name(slices_on(trace, "python"), means).height
            for means in (is_checkpoint_call, is_checkpoint_overhead)
        )
    return not _derives_backward_pass_again(trace)


def _derives_backward_pass_again(trace: Trace) -> bool:
    """Returns whether operators of the backward pass have numbers since they are derived again.

    Then most nodes run such operators, or most of these operators have a gradient: what a
    checkpoint runs again has none but within its own nodes.
    """
    found = _operators_within_nodes(trace)
    if 2 * found.is_derived.sum() > found.is_derived.size:
        return True
    return 2 * np.unique(found.node[found.is_numbered]).size > np.unique(found.node).size


@cached_per_trace
def takes_gradients_of_gradients(trace: Trace) -> bool:
    """Returns whether the program derives its backward pass (`create_graph=True`).

    Then operators within nodes of PyTorch's own operators have gradients that are computed. What a
    checkpoint runs again has some only within the checkpoint's node, which has no number.
    """
    found = _operators_within_nodes(trace)
    nodes = np.unique(found.node[found.is_numbered][found.is_derived])
    return any(map(names.is_numbered_node, trace.slices["name"].gather(nodes).cast(pl.String)))


@dataclass(frozen=True, slots=True)
class _OperatorsWithinNodes:
    """The operators that ran within backward nodes."""

    node: Ints
    """The innermost node around each of them."""
    is_numbered: Flags
    """Whether autograd numbers it, as it does where a gradient may be asked for."""
    is_derived: Flags
    """Of those that are numbered, whether a gradient was computed."""


def _operators_within_nodes(trace: Trace) -> _OperatorsWithinNodes:
    is_node = np.zeros(trace.slices.height, bool)
    is_node[filter_by_name(trace.slices, names.is_backward_node)["id"].to_numpy()] = True
    told = trace.op_args.select("id", (pl.col("sequence") >= 0) & (pl.col("forward_thread") == 0))
    operators = told["id"].to_numpy().astype(np.int64)
    node = nearest_ancestor_of_every_slice(trace, is_node)[operators].astype(np.int64)
    inside = (node != NO_SLICE) & ~is_node[operators]
    numbered = told["sequence"].fill_null(value=False).to_numpy()[inside]
    derived = np.isin(operators[inside][numbered], trace.op_args["forward"].drop_nulls().to_numpy())
    return _OperatorsWithinNodes(node[inside], numbered, derived)


def _is_entry_of_slices(entries: CallTree, slice_ids: pl.Series) -> Flags:
    found = np.zeros(entries.id.size, bool)
    place = entries.place[slice_ids.to_numpy()]
    found[place[place != NO_SLICE]] = True
    return found


def _parents_under_forward_operators(trace: Trace, entries: CallTree, is_backward: Flags) -> Ints:
    """Returns each slice's parent; for a backward operator this is its forward operator.

    Only the outermost operators of a backward node are moved. An operator that did not begin after
    its forward operator is not moved: its number must be wrong.
    """
    told = trace.op_args.select("id", "forward").drop_nulls()
    at = entries.place[told["id"].to_numpy()]
    to = entries.place[told["forward"].to_numpy()]
    known = (at != NO_SLICE) & (to != NO_SLICE)
    forward = np.full(entries.id.size, NO_SLICE, np.int64)
    forward[at[known]] = to[known]
    start = trace.slices["start"].to_numpy()[entries.id]
    adds = _is_entry_of_slices(
        entries, filter_by_name(trace.slices, names.accumulates_gradient)["id"]
    )
    at = np.flatnonzero(is_backward & (forward != NO_SLICE) & ~adds)
    at = at[start[forward[at]] < start[at]]
    above = entries.parent[at]
    of_same_node = (above != NO_SLICE) & (forward[above] == forward[at])
    at = at[~of_same_node]
    parent = entries.parent.copy()
    parent[at] = forward[at]
    alone = np.flatnonzero(is_backward & (parent == NO_SLICE))
    parent[alone] = _frames_calling_backward_for_roots(trace, entries, alone)
    return parent


def _frames_calling_backward_for_roots(trace: Trace, entries: CallTree, roots: Ints) -> Ints:
    """Returns for each root of the call tree the Python frame that called `backward`, or -1."""
    owner = line_owner_of_every_slice(trace)[entries.id[roots]]
    is_frame = np.zeros(trace.slices.height, bool)
    is_frame[trace.frame_args["id"].to_numpy()] = True
    called = (owner != NO_SLICE) & is_frame[owner] if is_frame.size else owner != NO_SLICE
    return np.where(called, entries.place[owner], NO_SLICE)


def _pass_codes_of_entries(trace: Trace, entries: CallTree, is_backward: Flags) -> NDArray[np.int8]:
    """Returns each slice's pass code, from the slice itself or else its nearest ancestor."""
    again = _is_entry_of_slices(entries, _forward_only_slice_ids(trace))
    asked = np.flatnonzero(again & ~is_backward)
    again[:] = False
    again[asked[nearest_ancestor(entries.parent, is_backward, asked) != NO_SLICE]] = True
    shown = np.full(entries.id.size, FORWARD_PASS, np.int8)
    shown[is_backward], shown[again] = BACKWARD_PASS, RECOMPUTE_PASS
    for level in node_indexes_by_depth(entries.depth)[1:]:
        plain = level[shown[level] == FORWARD_PASS]
        shown[plain] = shown[entries.parent[plain]]
    return shown
