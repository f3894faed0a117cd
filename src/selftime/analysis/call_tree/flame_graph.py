"""Folds the slices of a trace into a flame graph: one node for each path of names."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.call_tree import call_tree
from selftime.analysis.call_tree.costs import WorkByLaunchingEntry, device_work_by_launching_entry
from selftime.analysis.call_tree.name_tree import (
    CODE_OF_OTHER_NODE,
    NameTree,
    fold_slices_by_name,
    merge_small_nodes,
    parents_without_dropped_nodes,
)
from selftime.analysis.call_tree.parent_array_forests import node_reading_order, nodes_by_level
from selftime.analysis.call_tree.self_times import NAME_OF_ALL_PROFILER_STEPS
from selftime.analysis.call_tree.training_passes import find_training_passes
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.array_types import Flags, Ints
from selftime.errors import UsageError
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

FLAME_GRAPH_NODE_KINDS: Final = (
    "frame",
    "module",
    "annotation",
    "operator",
    "call",
    "kernel",
    "copy",
    "other",
)

_NODE_KIND_BY_SLICE_CATEGORY: Final = {
    **dict.fromkeys(names.FRAME_CATEGORIES, "frame"),
    **dict.fromkeys(names.ANNOTATION_CATEGORIES, "annotation"),
    **dict.fromkeys(names.OPERATOR_CATEGORIES, "operator"),
    **dict.fromkeys(names.RUNTIME_CALL_CATEGORIES, "call"),
    **dict.fromkeys(names.DEVICE_WORK_CATEGORIES, "kernel"),
    **dict.fromkeys(names.COPY_CATEGORIES, "copy"),
}
"""Maps a slice's category to the kind of its node in the flame graph.

A Python frame of an `nn.Module` has the kind `module`.
"""

_NAME_OF_MERGED_SMALL_NODES: Final = "(other)"


def flame_graph(
    trace: Trace, *, by_module: bool, on_device: bool, thread: str, counted: bool
) -> "FlameGraph":
    """Returns the tree of slices with the same path of names, with host or device times.

    Args:
        trace: The trace.
        by_module: Whether plain frames are left out, and backward operators are within modules.
        on_device: Whether the time is of devices, and kernels are leaves.
        thread: The only host thread that counts, by its number; empty for all.
        counted: Whether only what began in steps that count for medians does.
    """
    _raise_unless_thread_in_trace(trace, thread)
    stacked = _slices_for_flame_graph(trace, by_module=by_module, on_device=on_device)
    chosen = _is_slice_selected_by_options(trace, stacked, thread=thread, counted=counted)
    code, table = _node_name_index_of_each_slice(trace, stacked.id)
    own = np.where(chosen, stacked.own, 0)
    whole = fold_slices_by_name(stacked.parent, code, own, chosen.astype(np.int64))
    return FlameGraph(whole, table, int(own.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class FlameGraph:
    """A tree of slices folded by name."""

    tree: NameTree
    node_names: pl.DataFrame
    """Name, kind, file and line of each code of the tree."""
    total_time: int
    """The time of all roots, in ns."""

    def rows(self, *, min_share: float, max_nodes: int) -> pl.DataFrame:
        """Returns the nodes as rows, each before its descendants; small nodes are merged.

        Args:
            min_share: The smallest share of the total time that a node of its own has.
            max_nodes: The largest number of nodes, the largest ones; 0 keeps all.
        """
        least = min_share * self.total_time
        merged = merge_small_nodes(self.tree, min_total=least, max_nodes=max_nodes)
        return _flame_graph_rows(merged, self.node_names, self.total_time)


class _FlameGraphSlices(NamedTuple):
    """The n slices to fold into a flame graph: ids, parents and own times; arrays of shape (n,)."""

    id: Ints
    parent: Ints
    own: Ints
    """Each slice's time without its children, in ns, on the host or on the device."""
    host: Ints
    """The host slice of each row: the slice itself, or for device work the slice that launched it;
    -1 if unknown.
    """


def _raise_unless_thread_in_trace(trace: Trace, thread: str) -> None:
    known = trace.tracks.filter(pl.col("kind").is_in(["host", "python"]))["tid"].unique().sort()
    if thread and thread not in known:
        listed = ", ".join(known)
        raise UsageError(f"`thread` is `{thread}`; the trace has the host threads {listed}")


def _slices_for_flame_graph(trace: Trace, *, by_module: bool, on_device: bool) -> _FlameGraphSlices:
    if by_module:
        tree = find_training_passes(trace)
        entries, parent = tree.entries, tree.parent
    else:
        entries = call_tree(trace)
        parent = entries.parent
    dropped = np.zeros(entries.id.size, bool)
    if by_module:
        dropped |= _is_frame_outside_module_calls(trace)[entries.id] & (parent != NO_SLICE)
    if on_device:
        dropped |= _is_slice_of_category(trace, names.RUNTIME_CALL_CATEGORIES)[entries.id]
    above = parents_without_dropped_nodes(parent, dropped)
    holder = np.where(dropped, above, np.arange(above.size))
    if on_device:
        return _add_launched_work_as_children(
            device_work_by_launching_entry(trace, entries), entries.id, above, holder
        )
    own = np.zeros(holder.size, np.int64)
    np.add.at(own, holder[holder != NO_SLICE], entries.self_time[holder != NO_SLICE])
    return _FlameGraphSlices(
        *_keep_rows_and_renumber_parents(~dropped, above, entries.id, own, entries.id)
    )


def _add_launched_work_as_children(
    work: WorkByLaunchingEntry, slice_ids: Ints, parent: Ints, kept_ancestor: Ints
) -> _FlameGraphSlices:
    """Returns the host slices that launched device work, with that work as their children."""
    launcher = np.where(
        work.owner == NO_SLICE,
        NO_SLICE,
        kept_ancestor[work.owner] if kept_ancestor.size else NO_SLICE,
    )
    around = np.zeros(slice_ids.size, bool)
    at = np.unique(launcher[launcher != NO_SLICE])
    while at.size:
        around[at] = True
        at = np.unique(parent[at])
        at = at[(at != NO_SLICE) & ~around[at]]
    size = work.id.size
    began = np.where(
        work.owner == NO_SLICE, NO_SLICE, slice_ids[work.owner] if slice_ids.size else NO_SLICE
    )
    return _FlameGraphSlices(
        *_keep_rows_and_renumber_parents(
            np.append(around, np.ones(size, bool)),
            np.append(parent, launcher),
            np.append(slice_ids, work.id),
            np.append(np.zeros(slice_ids.size, np.int64), work.duration),
            np.append(slice_ids, began),
        )
    )


def _keep_rows_and_renumber_parents(
    is_kept: Flags, parent: Ints, *columns: Ints
) -> tuple[Ints, ...]:
    """Drops rows from columns; the parents become row numbers among the kept rows.

    The kept parents come second in the returned tuple, after the first of `columns`.
    """
    at = np.flatnonzero(is_kept)
    place = np.full(is_kept.size, NO_SLICE, np.int64)
    place[at] = np.arange(at.size)
    above = parent[at]
    first, *rest = (column[at] for column in columns)
    return first, np.where(above == NO_SLICE, NO_SLICE, place[above]), *rest


def _is_frame_outside_module_calls(trace: Trace) -> Flags:
    """Returns for each slice whether it is a Python frame that is not a call of an `nn.Module`."""
    found = _is_slice_of_category(trace, names.FRAME_CATEGORIES)
    modules = trace.frame_args.select("id", "module_id").drop_nulls()["id"]
    found[modules.to_numpy()] = False
    return found


def _is_slice_of_category(trace: Trace, categories: tuple[str, ...]) -> Flags:
    chosen = trace.slices["category"].is_in(list(categories))
    return chosen.to_numpy().copy()


def _is_slice_selected_by_options(
    trace: Trace, stacked: _FlameGraphSlices, *, thread: str, counted: bool
) -> Flags:
    chosen = np.ones(stacked.id.size, bool)
    known = stacked.host != NO_SLICE
    host = stacked.host[known]
    if thread:
        of_thread = (trace.tracks["tid"] == thread).to_numpy()
        chosen &= known
        chosen[known] &= of_thread[trace.slices["track"].to_numpy()[host]]
    if counted:
        chosen &= known
        chosen[known] &= is_instant_in_windows(
            trace.slices["start"].to_numpy()[host], counted_step_windows(trace)
        )
    return chosen


def _node_name_index_of_each_slice(trace: Trace, ids: Ints) -> tuple[Ints, pl.DataFrame]:
    """Returns each slice's row in a table of node names, kinds, files and lines, and the table."""
    slices = trace.slices.select("name", "category")[pl.Series(ids, dtype=pl.UInt32)]
    module = np.zeros(trace.slices.height, bool)
    told = trace.frame_args.select("id", "module_id").drop_nulls()["id"]
    module[told.to_numpy()] = True
    slices = slices.with_columns(module=module[ids].view(np.uint8))
    group, first = group_and_first_row_of_rows(slices)
    order = np.argsort(first)  # in input order
    texts = slices[pl.Series(first[order])].cast({"name": pl.String, "category": pl.String})
    named = [
        _node_name_kind_file_line(name, category, bool(known))
        for name, category, known in texts.iter_rows()
    ]
    places = {row: place for place, row in enumerate(dict.fromkeys(named))}
    code = np.empty(first.size, np.int64)
    code[order] = [places[row] for row in named]
    schema = {"name": pl.String, "kind": pl.String, "file": pl.String, "line": pl.Int32}
    table = pl.DataFrame(list(places), schema=schema, orient="row")
    return code[group], table


def _node_name_kind_file_line(
    name: str, category: str, is_module: bool
) -> tuple[str, str, str | None, int | None]:
    if names.profiler_step_number(name) is not None:
        return NAME_OF_ALL_PROFILER_STEPS, "annotation", None, None
    kind = "module" if is_module else _NODE_KIND_BY_SLICE_CATEGORY.get(category, "other")
    frame = names.parse_frame(name) if kind == "frame" else None
    place = (frame.file, frame.line) if frame else (None, None)
    return names.without_object_address(name), kind, *place


def _flame_graph_rows(tree: NameTree, node_names: pl.DataFrame, total_time: int) -> pl.DataFrame:
    """Returns the nodes of the flame graph as rows, each before its descendants."""
    other = {
        "name": [_NAME_OF_MERGED_SMALL_NODES],
        "kind": ["other"],
        "file": [None],
        "line": [None],
    }
    node_names = pl.concat([node_names, pl.DataFrame(other, schema=node_names.schema)])
    code = pl.Series(
        np.where(tree.code == CODE_OF_OTHER_NODE, node_names.height - 1, tree.code), dtype=pl.UInt32
    )
    order = node_reading_order(tree.parent, tree.total)
    row = np.empty(order.size, np.int64)
    row[order] = np.arange(order.size)
    depth = np.zeros(order.size, np.int64)
    for number, level in enumerate(nodes_by_level(tree.parent)):
        depth[level] = number
    parent = pl.Series(
        np.where(tree.parent == NO_SLICE, NO_SLICE, row[tree.parent] if row.size else NO_SLICE)
    )
    table = node_names[code].with_columns(
        depth=depth,
        total_time=tree.total,
        share=tree.total / max(total_time, 1),
        self_time=tree.own,
        count=tree.count,
        id=row,
        parent=parent.set(parent == NO_SLICE, None),
    )
    return table[order]
