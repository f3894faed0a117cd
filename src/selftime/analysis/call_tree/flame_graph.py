"""Folds the slices of a trace into a flame graph: one node for each path of names.

It is arranged top down as it was called, bottom up, around one name, as a flat profile, or in order
of time.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.flame_graph_slices import (
    FlameGraphSource,
    slices_for_flame_graph,
    slices_in_order_of_time,
)
from selftime.analysis.call_tree.name_tree import (
    CODE_OF_OTHER_NODE,
    NameTree,
    fold_slices_by_name,
    merge_small_nodes,
)
from selftime.analysis.call_tree.parent_array_forests import (
    node_reading_order,
    nodes_by_level,
    subtree_totals,
)
from selftime.analysis.call_tree.rearranged_name_trees import bottom_up, callees, callers, flat
from selftime.analysis.call_tree.self_times import NAME_OF_ALL_PROFILER_STEPS
from selftime.analysis.call_tree.time_ordered_tree import merge_small_neighbours
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
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

NAME_OF_MERGED_SMALL_NODES: Final = "(other)"


FlameGraphOrder: TypeAlias = Literal["top_down", "bottom_up", "flat", "time"]
"""How a flame graph is arranged."""


class FlameGraphName(NamedTuple):
    """The name that is the root of a flame graph."""

    name: str = ""
    """The name; empty for the whole."""
    kind: str = ""
    """The kind of its nodes, one of `FLAME_GRAPH_NODE_KINDS`; empty for any."""


class FlameGraphLimits(NamedTuple):
    """What nodes of a flame graph are merged to `(other)`."""

    min_share: float
    """The smallest share of the total time that a node of its own has."""
    max_nodes: int
    """The largest number of nodes, the largest ones; 0 keeps all."""


_MAX_KEPT_FLAME_GRAPHS: Final = 6
"""Number of flame graphs that are kept for a trace, as the page asks for several parts of one."""


class _KeptFlameGraphs:
    """The last flame graphs of a trace, by what they are made of."""

    def __init__(self) -> None:
        self._lock = Lock()  # a page requests several parts of one concurrently
        self._graphs: OrderedDict[FlameGraphSource, FlameGraph] = OrderedDict()

    def get(self, trace: Trace, source: FlameGraphSource) -> "FlameGraph":
        with self._lock:
            if source not in self._graphs:
                self._graphs[source] = _build_flame_graph(trace, source)
            self._graphs.move_to_end(source)
            while len(self._graphs) > _MAX_KEPT_FLAME_GRAPHS:
                self._graphs.popitem(last=False)
            return self._graphs[source]


@cached_per_trace
def _kept_flame_graphs(trace: Trace) -> _KeptFlameGraphs:  # noqa: ARG001 - of which they are kept
    return _KeptFlameGraphs()


def _build_flame_graph(trace: Trace, source: FlameGraphSource) -> "FlameGraph":
    stacked, chosen = slices_for_flame_graph(trace, source)
    code, table = node_name_index_of_each_slice(trace, stacked.id)
    whole = fold_slices_by_name(stacked.parent, code, stacked.own, chosen.astype(np.int64))
    return FlameGraph(whole, table, int(stacked.own.sum()))


def flame_graph(trace: Trace, source: FlameGraphSource) -> "FlameGraph":
    """Returns the tree of slices with the same path of names, with host or device times."""
    return _kept_flame_graphs(trace).get(trace, source)


@dataclass(frozen=True, slots=True, eq=False)
class FlameGraph:
    """A tree of slices folded by name."""

    tree: NameTree
    node_names: pl.DataFrame
    """Name, kind, file and line of each code of the tree."""
    total_time: int
    """The time of all roots, in ns."""

    def rows(self, order: FlameGraphOrder, limits: FlameGraphLimits) -> pl.DataFrame:
        """Returns the nodes as rows, each before its descendants; small nodes are merged."""
        least = limits.min_share * self.total_time
        if order == "flat":
            tree = flat(self.tree, min_total=least, max_names=limits.max_nodes)
            return _flame_graph_rows(tree, self.node_names, self.total_time)
        tree = bottom_up(self.tree, min_total=least) if order == "bottom_up" else self.tree
        return self._merged_rows(tree, least, limits)

    def rows_of_name(
        self, asked: FlameGraphName, order: FlameGraphOrder, limits: FlameGraphLimits
    ) -> pl.DataFrame:
        """Returns a name as root, with its callees below it, or bottom up with its callers."""
        is_asked = self._is_name(asked)
        least = limits.min_share * self._total_of_names(is_asked)
        if order == "bottom_up":
            tree = callers(self.tree, is_asked, min_total=least)
        else:
            tree = callees(self.tree, is_asked)
        return self._merged_rows(tree, least, limits)

    def _is_name(self, asked: FlameGraphName) -> Flags:
        """Flags the codes of a name, of one kind or of any."""
        wanted = pl.col("name") == names.without_object_address(asked.name)
        if asked.kind:
            wanted &= pl.col("kind") == asked.kind
        return self.node_names.select(wanted).to_series().to_numpy()

    def _total_of_names(self, is_asked_name: Flags) -> int:
        roots = callers(self.tree, is_asked_name, min_total=np.inf)
        return int(roots.total.sum())

    def _merged_rows(self, tree: NameTree, least: float, limits: FlameGraphLimits) -> pl.DataFrame:
        merged = merge_small_nodes(tree, min_total=least, max_nodes=limits.max_nodes)
        return _flame_graph_rows(merged, self.node_names, self.total_time)


def flame_graph_rows(
    trace: Trace,
    source: FlameGraphSource,
    order: FlameGraphOrder,
    asked: FlameGraphName,
    limits: FlameGraphLimits,
) -> pl.DataFrame:
    """Returns the nodes of a trace's flame graph as rows, each before its descendants.

    Args:
        trace: The trace.
        source: What the flame graph is made of.
        order: How it is arranged.
        asked: The name that is the root; empty for all.
        limits: What nodes are left out.

    Raises:
        UsageError: A name cannot be the root in this order, or there is no such kind.
    """
    if asked.kind and asked.kind not in FLAME_GRAPH_NODE_KINDS:
        known = ", ".join(FLAME_GRAPH_NODE_KINDS)
        raise UsageError(f"`kind` is `{asked.kind[:40]}`; choose one of {known}")
    if asked.name and order in {"flat", "time"}:
        raise UsageError(f"`of` takes the order top_down or bottom_up, not {order}")
    if order == "time":
        return _time_ordered_rows(trace, source, limits)
    graph = flame_graph(trace, source)
    return graph.rows_of_name(asked, order, limits) if asked.name else graph.rows(order, limits)


def _time_ordered_rows(
    trace: Trace, source: FlameGraphSource, limits: FlameGraphLimits
) -> pl.DataFrame:
    """Returns a row for each slice in order of time, each before those within it."""
    found = slices_in_order_of_time(trace, source)
    slices = found.slices
    code, table = node_name_index_of_each_slice(trace, slices.id)
    total = subtree_totals(slices.parent, slices.own)
    tree = NameTree(slices.parent, code, slices.own, total, found.is_chosen.astype(np.int64))
    whole = int(slices.own.sum())
    least = limits.min_share * whole
    merged = merge_small_neighbours(
        tree, found.start, found.thread, min_total=least, max_nodes=limits.max_nodes
    )
    first = merged.first
    # the merged nodes with one parent are in order of their threads and starts
    rank = -np.arange(first.size, dtype=np.int64)
    return _flame_graph_rows(
        merged.tree,
        table,
        whole,
        rank=rank,
        start=pl.Series(found.start[first]),
        thread=trace.tracks["tid"].gather(found.track[first]),
    )


def node_name_index_of_each_slice(trace: Trace, ids: Ints) -> tuple[Ints, pl.DataFrame]:
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


def _flame_graph_rows(
    tree: NameTree,
    node_names: pl.DataFrame,
    total_time: int,
    *,
    rank: Ints | None = None,
    **more_columns: pl.Series,
) -> pl.DataFrame:
    """Returns the nodes of the flame graph as rows, each before its descendants.

    Args:
        tree: The tree of names.
        node_names: Name, kind, file and line of each code of the tree.
        total_time: The time that is a share of 1, in ns.
        rank: By what siblings are sorted, the largest first; their total by default.
        more_columns: Further columns, in the order of the nodes.
    """
    other = {
        "name": [NAME_OF_MERGED_SMALL_NODES],
        "kind": ["other"],
        "file": [None],
        "line": [None],
    }
    node_names = pl.concat([node_names, pl.DataFrame(other, schema=node_names.schema)])
    code = pl.Series(
        np.where(tree.code == CODE_OF_OTHER_NODE, node_names.height - 1, tree.code), dtype=pl.UInt32
    )
    order = node_reading_order(tree.parent, tree.total if rank is None else rank)
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
        **more_columns,
    )
    return table[order]
