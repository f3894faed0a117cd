"""Folds the memory blocks that exist at an instant into a flame graph of what allocated them.

An allocator's snapshot has the Python stack of each allocation. Elsewhere a block is within the
operator that allocated it, and that within its callers.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.flame_graph import (
    FlameGraph,
    FlameGraphLimits,
    node_name_index_of_each_slice,
)
from selftime.analysis.call_tree.flame_graph_slices import (
    FlameGraphSource,
    keep_rows_and_renumber_parents,
    slices_for_flame_graph,
)
from selftime.analysis.call_tree.name_tree import fold_slices_by_name
from selftime.analysis.memory.block_grouping import (
    grouping_columns,
    memory_blocks_with_grouping_columns,
)
from selftime.analysis.memory.block_holders import innermost_slices_of_memory_records
from selftime.analysis.memory.blocks import (
    STATE_BEFORE_RECORDING,
    is_block_alive_after_record,
    memory_blocks_of_device_type,
)
from selftime.analysis.memory.memory_peak import MemoryPeakOfDevice, find_memory_peak
from selftime.analysis.memory.memory_records import memory_records_with_totals
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, flag_with_ancestors, nearest_ancestor
from selftime.trace import Trace

_Node = tuple[str, str, str | None, int | None]
"""A node's name, kind, file and line."""

_NODE_OF_STACK_WITHOUT_FRAMES: Final[_Node] = ("(no Python frame)", "other", None, None)
_NODE_OF_UNKNOWN_ALLOCATION: Final[_Node] = ("(unknown)", "other", None, None)


class _Forest(NamedTuple):
    """Nodes to fold, each after its parent: arrays with one element for each node."""

    parent: Ints
    code: Ints
    """The row of each node in `named`."""
    amount: Ints
    """The bytes that each node itself allocated."""
    blocks: Ints
    """The number of blocks that each node itself allocated."""
    named: pl.DataFrame
    """Name, kind, file and line of each code."""


def memory_flame_graph_rows(
    trace: Trace,
    device_type: str,
    search_range: tuple[int, int],
    *,
    by: str,
    min_share: float,
    max_nodes: int,
) -> pl.DataFrame:
    """Returns the tree of what allocated each device's memory, as it is when most is allocated.

    Args:
        trace: The trace.
        device_type: The type of the devices, such as CUDA; empty for all.
        search_range: The first and last instant (ns) of the search for the peak.
        by: What the tree is of: `stack`, `module`, or `line`.
        min_share: The smallest share of a device's memory that a node of its own has.
        max_nodes: The largest number of nodes of a device; 0 for all.
    """
    every = memory_blocks_of_device_type(trace, device_type)
    tables: list[pl.DataFrame] = []
    for part in memory_records_with_totals(trace, device_type).partition_by(
        "type", "device", maintain_order=True
    ):
        peak = find_memory_peak(part, search_range)
        graph = _flame_graph_of_device(trace, every, peak, by)
        rows = graph.rows("top_down", FlameGraphLimits(min_share, max_nodes))
        first = sum(table.height for table in tables)
        tables.append(
            rows.with_columns(
                pl.col("id", "parent") + first,
                origin=_origins_of_frames(rows),
                device_type=pl.lit(peak.device_type),
                device=pl.lit(peak.device),
                time=pl.lit(peak.time),
            )
        )
    return pl.concat(tables, how="vertical_relaxed") if tables else pl.DataFrame()


def _origins_of_frames(rows: pl.DataFrame) -> pl.Series:
    """Returns whose code each frame is; null for other nodes."""
    frames = rows.filter(pl.col("kind") == "frame")["name"].unique().to_list()
    known = {name: frame.origin for name in frames if (frame := names.parse_frame(name))}
    return rows["name"].replace_strict(known, default=None, return_dtype=pl.String)


def _flame_graph_of_device(
    trace: Trace, blocks: pl.DataFrame, peak: MemoryPeakOfDevice, by: str
) -> FlameGraph:
    alive = blocks.filter(
        pl.col("type").eq_missing(peak.type)
        & pl.col("device").eq_missing(peak.device)
        & is_block_alive_after_record(peak.record)
    )
    stacks = trace.memory["call_stack"].gather(alive["allocation"])
    if by == "line":
        parts = [_forest_of_lines(trace, alive)]
    else:
        told = stacks.is_not_null()
        parts = [
            _forest_of_stacks(alive.filter(told), stacks.filter(told)),
            _forest_of_slices(trace, alive.filter(~told), by_module=by == "module"),
        ]
    rest = peak.allocated - int(alive["size"].sum())
    if rest > 0:
        parts.append(
            _forest_of_paths([((f"({STATE_BEFORE_RECORDING})", "other", None, None),)], [rest], [0])
        )
    forest = _joined_forests(parts)
    tree = fold_slices_by_name(forest.parent, forest.code, forest.amount, forest.blocks)
    return FlameGraph(tree, forest.named, int(forest.amount.sum()))


def _forest_of_stacks(blocks: pl.DataFrame, stacks: pl.Series) -> _Forest:
    """Returns the frames of the records' own stacks, the outermost first."""
    sums = (
        pl.DataFrame({"stack": stacks.cast(pl.String), "size": blocks["size"]})
        .group_by("stack", maintain_order=True)
        .agg(pl.col("size").sum(), count=pl.len())
    )
    paths = [
        tuple(map(_node_of_frame, reversed(stack.split(";")))) if stack else ()
        for stack in sums["stack"]
    ]
    return _forest_of_paths(
        [path or (_NODE_OF_STACK_WITHOUT_FRAMES,) for path in paths], sums["size"], sums["count"]
    )


def _node_of_frame(frame_name: str) -> _Node:
    frame = names.parse_frame(frame_name)
    place = (frame.file, frame.line) if frame else (None, None)
    return names.without_object_address(frame_name), "frame", *place


def _forest_of_lines(trace: Trace, blocks: pl.DataFrame) -> _Forest:
    """Returns files, the lines in each, and what these allocated with."""
    columns = grouping_columns("line+operator")
    sums = (
        memory_blocks_with_grouping_columns(trace, blocks, columns)
        .group_by(columns, maintain_order=True)
        .agg(pl.col("size").sum(), count=pl.len())
    )
    paths: list[tuple[_Node, ...]] = []
    for row in sums.select("file", "line", "function", "operator").iter_rows(named=True):
        file, line, function, operator = row.values()
        leaf: tuple[_Node, ...] = ((operator, "operator", None, None),) if operator else ()
        where: tuple[_Node, ...] = ()
        if file is not None:
            name = f"{file}({line}): {function}"
            where = ((file, "frame", file, None), (name, "frame", file, line))
        paths.append((*where, *leaf) or (_NODE_OF_UNKNOWN_ALLOCATION,))
    return _forest_of_paths(paths, sums["size"], sums["count"])


def _forest_of_paths(
    paths: Sequence[tuple[_Node, ...]], sizes: Iterable[int], counts: Iterable[int]
) -> _Forest:
    """Returns the nodes of paths from the root on; bytes and blocks are of the last node."""
    codes: dict[_Node, int] = {}
    parent: list[int] = []
    code: list[int] = []
    ends: list[int] = []
    for path in paths:
        for place, node in enumerate(path):
            parent.append(NO_SLICE if place == 0 else len(parent) - 1)
            code.append(codes.setdefault(node, len(codes)))
        ends.append(len(parent) - 1)
    amount, count = (np.zeros(len(parent), np.int64) for _ in range(2))
    amount[ends], count[ends] = list(sizes), list(counts)
    schema = {"name": pl.String, "kind": pl.String, "file": pl.String, "line": pl.Int32}
    named = pl.DataFrame(list(codes), schema=schema, orient="row")
    return _Forest(np.array(parent, np.int64), np.array(code, np.int64), amount, count, named)


def _forest_of_slices(trace: Trace, blocks: pl.DataFrame, *, by_module: bool) -> _Forest:
    """Returns the slices around the allocations of blocks; without any a block has one node."""
    slices, _ = slices_for_flame_graph(trace, FlameGraphSource(by_module=by_module))
    owner = _slices_of_flame_graph_that_allocated(trace, slices.id, blocks["allocation"])
    known = owner != NO_SLICE
    around = flag_with_ancestors(slices.parent, owner)
    size = blocks["size"].to_numpy()
    amount, count = (np.zeros(slices.id.size, np.int64) for _ in range(2))
    np.add.at(amount, owner[known], size[known])
    np.add.at(count, owner[known], 1)
    ids, parent, amount, count = keep_rows_and_renumber_parents(
        around, slices.parent, slices.id, amount, count
    )
    code, named = node_name_index_of_each_slice(trace, ids)
    forest = _Forest(parent, code, amount, count, named)
    lost = size[~known]
    if not lost.size:
        return forest
    unknown = _forest_of_paths([(_NODE_OF_UNKNOWN_ALLOCATION,)], [int(lost.sum())], [lost.size])
    return _joined_forests([forest, unknown])


def _slices_of_flame_graph_that_allocated(trace: Trace, ids: Ints, record_rows: pl.Series) -> Ints:
    """Returns for each record the index in `ids` of its slice or nearest ancestor, or -1."""
    place = np.full(trace.slices.height, NO_SLICE, np.int64)
    place[ids] = np.arange(ids.size)
    asked = innermost_slices_of_memory_records(trace, record_rows)
    found = nearest_ancestor(
        parent_of_every_slice(trace),
        place != NO_SLICE,
        asked.cast(pl.Int64).fill_null(NO_SLICE).to_numpy(),
    )
    return np.where(found == NO_SLICE, NO_SLICE, place[found] if place.size else NO_SLICE)


def _joined_forests(parts: Sequence[_Forest]) -> _Forest:
    """Returns one forest of all nodes; equal nodes of different parts stay apart."""
    nodes = np.cumsum([0, *(part.parent.size for part in parts)])
    names_before = np.cumsum([0, *(part.named.height for part in parts)])
    parents = [
        np.where(part.parent == NO_SLICE, NO_SLICE, part.parent + first)
        for part, first in zip(parts, nodes, strict=False)
    ]
    codes = [part.code + first for part, first in zip(parts, names_before, strict=False)]
    return _Forest(
        np.concatenate(parents),
        np.concatenate(codes),
        np.concatenate([part.amount for part in parts]),
        np.concatenate([part.blocks for part in parts]),
        pl.concat([part.named for part in parts]),
    )
