"""A flame graph: the tree of Python frames, modules, operators and kernels, with their times."""

from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.call_tree import call_tree
from selftime.analysis.call_tree.costs import (
    WorkByLaunchingEntry,
    device_work_by_launching_entry,
)
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
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import RowLimit, Share, view

_NODE_KINDS: Final = (
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


@view(
    Column(
        "name",
        pl.String,
        "name",
        "The name of the frame, module, annotation, operator, call or kernel.",
    ),
    Column("kind", pl.Enum(_NODE_KINDS), "name", f"One of {', '.join(_NODE_KINDS)}."),
    Column("depth", pl.Int64, "count", "The number of the node's ancestors."),
    Column("total_time", pl.Int64, "ns", "Time of the node with all descendants."),
    Column("share", pl.Float64, "ratio", "Total time of the node divided by that of all roots."),
    Column("self_time", pl.Int64, "ns", "Time of the node without descendants."),
    Column("count", pl.Int64, "count", "The number of slices in the node."),
    Column("file", pl.String, "text", "The source file of a frame; null for others.", True),
    Column(
        "line", pl.Int32, "id", "The line that defines a frame's function; null for others.", True
    ),
    Column("id", pl.Int64, "id", "The number of the row, to which the column `parent` refers."),
    Column("parent", pl.Int64, "id", "The number of the parent's row; null for a root.", True),
    needs=("stacks",),
    sums=("self_time",),
)
def flame(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    metric: Literal["auto", "host", "device"] = "auto",
    by: Literal["stack", "module"] = "stack",
    thread: str = "",
    counted: bool = False,
    min_share: Share = 0.001,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """The tree of Python frames, modules, operators and kernels, with host or device times.

    Slices with the same path of names are one node. Each node comes before its descendants, the
    heaviest branch first. `metric` is the time that is summed: of the host, or of the device (auto)
    where there is any; then kernels are the leaves and calls are left out. `by` stack nests slices
    as they ran; by module plain frames are left out, and backward operators are within the module
    of their forward operator. `thread` keeps one host thread, by its number in the trace, and the
    work that it launched; `counted` keeps what began in the steps that count for medians.

    Nodes below `min_share` of the whole, less than a pixel of a screen, are merged into `(other)`
    below their parent; `top` keeps the largest nodes; 0 keeps all. Totals stay complete.
    """
    _raise_unless_thread_in_trace(trace, thread)
    on_device = metric == "device" or (metric == "auto" and trace.device_args.height > 0)
    stacked = _slices_for_flame_graph(trace, by=by, on_device=on_device)
    chosen = _is_slice_selected_by_options(trace, stacked, thread=thread, counted=counted)
    code, table = _node_name_index_of_each_slice(trace, stacked.id)
    own = np.where(chosen, stacked.own, 0)
    whole = fold_slices_by_name(stacked.parent, code, own, chosen.astype(np.int64))
    everything = int(own.sum())
    return _flame_graph_rows(
        merge_small_nodes(whole, min_total=min_share * everything, max_nodes=top), table, everything
    )


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


def _slices_for_flame_graph(trace: Trace, *, by: str, on_device: bool) -> _FlameGraphSlices:
    if by == "module":
        tree = find_training_passes(trace)
        entries, parent = tree.entries, tree.parent
    else:
        entries = call_tree(trace)
        parent = entries.parent
    dropped = np.zeros(entries.id.size, bool)
    if by == "module":
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
    return table[order].select(pl.col(c.name).cast(c.dtype) for c in flame.columns)
