"""Compares the modules and operators of two recordings, as one tree matched by names.

Kernels are left out, since their names differ between versions and vendors: their time counts for
the operator that launched them. Modules are matched by class and by position among those of the
same class within one module, so that an additional layer elsewhere shifts none. Frames that are not
modules are left out, as one recording may lack them.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.costs import device_work_by_launching_entry
from selftime.analysis.call_tree.module_tree import module_tree
from selftime.analysis.call_tree.name_tree import (
    MergedSiblingNodes,
    merge_equal_siblings,
    parents_without_dropped_nodes,
)
from selftime.analysis.call_tree.parent_array_forests import nodes_by_level
from selftime.analysis.call_tree.training_passes import PassTree, find_training_passes
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.array_types import Floats, Ints
from selftime.compare.amounts_per_step import (
    AmountsPerStep,
    StepWindows,
    inclusive_amounts,
    mean_and_variance_over_steps,
    step_windows,
)
from selftime.compare.difference_columns import (
    DIFFERENCE_COLUMNS,
    difference_columns,
    difference_verdicts,
)
from selftime.compare.statistical_significance import MeanAndVariance
from selftime.nesting import NO_SLICE
from selftime.schema import Column, Table
from selftime.trace import Trace

Metric: TypeAlias = Literal["host", "device"]
NodeName: TypeAlias = tuple[str, str]
"""Kind and name of a tree node; the kind is `module`, `annotation`, `operator` or `other`."""

OUTSIDE_OPERATORS_NODE: Final[NodeName] = ("other", "(in no operator)")
"""Kind and name of the tree's node for time outside of all operators."""

TREE_TABLE: Final = Table(
    "tree",
    "Modules and operators of both recordings, by self time; rows add up to the total.",
    (
        Column(
            "path",
            pl.String,
            "name",
            "Names of the nodes from the tree's root to this node, joined by ` > `.",
        ),
        *DIFFERENCE_COLUMNS,
        Column(
            "total_before",
            pl.Float64,
            "ns",
            "Time per step before the change in this node and all nodes below it.",
        ),
        Column(
            "total_after",
            pl.Float64,
            "ns",
            "Time per step after the change in this node and all nodes below it.",
        ),
        Column(
            "total_difference",
            pl.Float64,
            "ns",
            "`total_after` minus `total_before`; negative means faster.",
        ),
        Column(
            "total_verdict",
            pl.String,
            "name",
            "Effect on the node's total time: new, gone, slower or faster; null if it may be "
            "chance.",
            True,
        ),
        Column(
            "calls_before",
            pl.Float64,
            "count",
            "Number of calls of the node per step before the change.",
        ),
        Column(
            "calls_after",
            pl.Float64,
            "count",
            "Number of calls of the node per step after the change.",
        ),
        Column("name", pl.String, "name", "Name of the module, annotation or operator."),
        Column("kind", pl.String, "name", "Kind of node: module, annotation, operator or other."),
        Column("depth", pl.Int64, "count", "Number of nodes above this node; 0 for a root."),
        Column(
            "id",
            pl.Int64,
            "id",
            "Number of the row, to which the column `parent` of other rows refers.",
        ),
        Column(
            "parent", pl.Int64, "id", "`id` of the node above this node; null for a root.", True
        ),
    ),
)


def compared_tree(before: Trace, after: Trace, metric: Metric) -> pl.DataFrame:
    """Returns `TREE_TABLE`: modules and operators before and after, largest difference first.

    `metric` selects the time: of the device work that operators launch, or of all host threads;
    host time outside of operators is left out if a recording has no Python frames.
    """
    with_modules = all(_has_module_calls(trace) for trace in (before, after))
    with_frames = all(trace.frame_args.height > 0 for trace in (before, after))
    codes: dict[NodeName, int] = {OUTSIDE_OPERATORS_NODE: 0}
    sides = [
        _recording_tree(trace, metric, codes, with_modules=with_modules, with_frames=with_frames)
        for trace in (before, after)
    ]
    nodes, found = _merge_recording_trees(*sides)
    table = _node_comparison_table(nodes, list(codes), *found)
    table = table.filter(
        _is_chosen_or_ancestor_of_chosen(nodes.parent, _has_time_or_changed_calls(table))
    )
    order = pl.col("difference").abs()
    return table.sort(order, "path", descending=[True, False]).select(*TREE_TABLE.dtypes)


@dataclass(frozen=True, slots=True)
class _NodeTimesAndCalls:
    """Each tree node's self time and total time in ns, and calls, per step; shape (nodes,)."""

    self_time: MeanAndVariance
    total: MeanAndVariance
    """Time of each node with all nodes below it, in ns per step."""
    calls: Floats


def _merge_recording_trees(
    before: "_RecordingTree", after: "_RecordingTree"
) -> tuple[MergedSiblingNodes, list[_NodeTimesAndCalls]]:
    """Merges two recordings' trees; returns the merged nodes, and node times for each recording."""
    size = before.parent.size
    shifted = np.where(after.parent == NO_SLICE, NO_SLICE, after.parent + size)
    nodes = merge_equal_siblings(
        np.concatenate([before.parent, shifted]),
        np.concatenate([before.name_code, after.name_code]),
    )
    count = nodes.code.size
    found = []
    places = nodes.node[:size], nodes.node[size:]
    for side, node in zip((before, after), places, strict=True):
        own = AmountsPerStep(node[side.amounts.item], side.amounts.step, side.amounts.amount)
        once = AmountsPerStep(node, side.step_of_begin, np.ones(node.size, np.int64))
        whole = inclusive_amounts(own, nodes.parent, side.step_count)
        each, total, calls = (
            mean_and_variance_over_steps(one, count, side.step_count) for one in (own, whole, once)
        )
        found.append(_NodeTimesAndCalls(each, total, calls.mean))
    return nodes, found


def _has_time_or_changed_calls(table: pl.DataFrame) -> NDArray[np.bool_]:
    """Returns whether each row of `TREE_TABLE` has any time, or a different number of calls."""
    takes = (pl.col("total_before") > 0) | (pl.col("total_after") > 0)
    found = table.select(takes | (pl.col("calls_before") != pl.col("calls_after")))
    return found.to_series().to_numpy()


def _is_chosen_or_ancestor_of_chosen(parent: Ints, is_chosen: NDArray[np.bool_]) -> pl.Series:
    """Returns whether each node of a tree is chosen or is the ancestor of a chosen node."""
    kept = is_chosen.copy()
    for level in reversed(nodes_by_level(parent)[1:]):
        kept[parent[level[kept[level]]]] = True
    return pl.Series(kept)


def _node_comparison_table(
    nodes: MergedSiblingNodes,
    node_names: list[NodeName],
    before: _NodeTimesAndCalls,
    after: _NodeTimesAndCalls,
) -> pl.DataFrame:
    depth = np.zeros(nodes.code.size, np.int64)
    for number, level in enumerate(nodes_by_level(nodes.parent)):
        depth[level] = number
    calls = before.calls, after.calls
    texts = [node_names[code] for code in nodes.code.tolist()]
    return pl.DataFrame(
        {
            "path": _paths_from_root(nodes.parent, texts),
            **difference_columns(before.self_time, after.self_time),
            "verdict": difference_verdicts(before.self_time, after.self_time, *calls),
            "total_before": before.total.mean,
            "total_after": after.total.mean,
            "total_difference": after.total.mean - before.total.mean,
            "total_verdict": difference_verdicts(before.total, after.total, *calls),
            "calls_before": before.calls,
            "calls_after": after.calls,
            "name": [name for _, name in texts],
            "kind": [kind for kind, _ in texts],
            "depth": depth,
            "id": np.arange(depth.size),
            "parent": pl.Series(nodes.parent).set(pl.Series(nodes.parent == NO_SLICE), None),
        },
        schema_overrides=TREE_TABLE.dtypes,
    )


@dataclass(frozen=True, slots=True)
class _RecordingTree:
    """Call tree of a recording's modules, annotations and operators; parents before children."""

    parent: Ints
    name_code: Ints
    step_of_begin: Ints
    """Index of the step in which each node began; -1 for a node outside all steps."""
    amounts: AmountsPerStep
    """Self time of each node in each step, in ns: without the nodes below the node."""
    step_count: int


def _recording_tree(
    trace: Trace,
    metric: Metric,
    name_codes: dict[NodeName, int],
    *,
    with_modules: bool,
    with_frames: bool,
) -> _RecordingTree:
    tree, steps = find_training_passes(trace), step_windows(trace)
    id_ = tree.entries.id
    of_module = _module_name_by_call_tree_entry(trace, tree) if with_modules else {}
    dropped = _is_no_node_of_tree(trace)[id_]
    dropped[list(of_module)] = False
    above = parents_without_dropped_nodes(tree.parent, dropped)
    holder = np.where(dropped, above, np.arange(above.size))
    kept = np.flatnonzero(~dropped)
    # The first place is for time outside of all nodes.
    place = np.full(dropped.size, NO_SLICE, np.int64)
    place[kept] = np.arange(kept.size) + 1
    start = trace.slices["start"].to_numpy()
    began = steps.step_index_at(start[id_])
    parent = np.append(NO_SLICE, np.where(above[kept] == NO_SLICE, NO_SLICE, place[above[kept]]))
    node_of = np.where(holder == NO_SLICE, 0, place[holder])
    if metric == "device":
        amounts = _device_time_by_launching_node_and_step(trace, tree, node_of, steps)
    else:
        is_counted = (holder != NO_SLICE) | with_frames
        amounts = AmountsPerStep(
            node_of[is_counted], began[is_counted], tree.entries.self_time[is_counted]
        )
    code = np.append(
        0,
        _node_name_codes_of_slices(
            trace, id_[kept], {place[e] - 1: m for e, m in of_module.items()}, name_codes
        ),
    )
    return _RecordingTree(parent, code, np.append(NO_SLICE, began[kept]), amounts, steps.count)


def _device_time_by_launching_node_and_step(
    trace: Trace, tree: PassTree, node_of_entry: Ints, steps: StepWindows
) -> AmountsPerStep:
    """Returns the device time in ns of work launched by each node, in the step of the launch."""
    work = device_work_by_launching_entry(trace, tree.entries)
    owned = work.owner != NO_SLICE
    start = trace.slices["start"].to_numpy()
    begun = start[work.id].copy()
    begun[owned] = start[tree.entries.id[work.owner[owned]]]
    by = np.zeros(work.id.size, np.int64)
    by[owned] = node_of_entry[work.owner[owned]]
    return AmountsPerStep(by, steps.step_index_at(begun), work.duration)


def _has_module_calls(trace: Trace) -> bool:
    return bool(trace.frame_args["module_id"].is_not_null().any())


def _is_no_node_of_tree(trace: Trace) -> NDArray[np.bool_]:
    """Returns whether the tree omits each slice: frames, runtime calls and step annotations."""
    category = trace.slices["category"]
    left = (
        category.is_in([*names.FRAME_CATEGORIES, *names.RUNTIME_CALL_CATEGORIES]).to_numpy().copy()
    )
    marks = {
        text
        for text in trace.slices["name"].unique().cast(pl.String).to_list()
        if names.profiler_step_number(text) is not None
    }
    left |= trace.slices["name"].cast(pl.String).is_in(marks).to_numpy() if marks else False
    return left


def _module_name_by_call_tree_entry(trace: Trace, tree: PassTree) -> dict[int, str]:
    """Returns the name of each module call, such as `Linear 2`, by index in the call tree."""
    found = module_tree(trace, tree)
    asked = trace.frame_args.select("id", "module_id").drop_nulls()["id"].to_numpy()
    entries = tree.entries.place[asked]
    entries = entries[entries != NO_SLICE]
    same_class: dict[tuple[int, str], list[int]] = {}
    for node, (instance, above) in enumerate(
        zip(found.instances, found.parent.tolist(), strict=True)
    ):
        same_class.setdefault((above, instance.kind), []).append(node)
    module_names: dict[int, str] = {}
    for (_, kind), every in same_class.items():
        numbered = sorted(every, key=lambda node: (found.instances[node].number or 0, node))
        for which, node in enumerate(numbered, 1):
            module_names[node] = kind if which == 1 else f"{kind} {which}"
    nodes = found.node[entries]
    return {
        entry: module_names[node]
        for entry, node in zip(entries.tolist(), nodes.tolist(), strict=True)
        if node != NO_SLICE
    }


def _node_name_codes_of_slices(
    trace: Trace, slice_ids: Ints, module_names: dict[int, str], codes: dict[NodeName, int]
) -> Ints:
    """Returns the number in `codes` of each slice's (kind, name); adds pairs that `codes` lacks."""
    slices = trace.slices.select("name", "category")[pl.Series(slice_ids, dtype=pl.UInt32)]
    group, first = group_and_first_row_of_rows(slices)
    texts = slices[pl.Series(first)].cast({"name": pl.String, "category": pl.String})
    known = np.array(
        [
            codes.setdefault((_node_kind(category), names.without_object_address(name)), len(codes))
            for name, category in texts.iter_rows()
        ],
        np.int64,
    )
    code: Ints = known[group]
    for place, name in module_names.items():
        code[place] = codes.setdefault(("module", name), len(codes))
    return code


def _node_kind(category: str) -> str:
    if category in names.ANNOTATION_CATEGORIES:
        return "annotation"
    return "operator" if category in names.OPERATOR_CATEGORIES else "other"


def _paths_from_root(parent: Ints, node_names: list[NodeName]) -> list[str]:
    """Returns each node's path: the names from the root to the node, joined by ` > `."""
    paths: list[str] = []
    for (_, name), above in zip(node_names, parent.tolist(), strict=True):
        paths.append(name if above == NO_SLICE else f"{paths[above]} > {name}")
    return paths
