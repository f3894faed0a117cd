"""Times, FLOPs and memory of each nn.Module of the program, in the tree of modules."""

from typing import Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.call_tree.costs import (
    call_tree_entry_costs,
    device_work_by_launching_entry,
)
from selftime.analysis.call_tree.module_tree import ModuleTree, module_tree
from selftime.analysis.call_tree.parent_array_forests import (
    is_outermost_of_key,
    node_reading_order,
    nodes_by_level,
    subtree_totals_by_level,
)
from selftime.analysis.call_tree.self_times import self_times
from selftime.analysis.call_tree.training_passes import (
    BACKWARD_PASS,
    FORWARD_PASS,
    RECOMPUTE_PASS,
    PassTree,
    find_training_passes,
)
from selftime.analysis.models.modelled_operator_work import (
    modelled_work_of_operators,
    tensor_core_times_by_operator,
)
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view

_PASS_CODE_BY_NAME: Final = {
    "forward": FORWARD_PASS,
    "backward": BACKWARD_PASS,
    "recompute": RECOMPUTE_PASS,
}
_TOTAL_COLUMN_BY_OWN_COLUMN: Final = {
    "device_time": "total_device_time",
    "self_cpu_time": "total_cpu_time",
}
"""Maps the column of a module's time without inner modules to the column of its total time."""
_SORT_COLUMNS_OF_CLASSES: Final = ("total_device_time", "total_cpu_time")
"""Columns by which branches of the module tree are sorted; the first one with values counts."""


@view(
    Column(
        "path",
        pl.String,
        "name",
        "The module's path from the root; null for work outside modules.",
        True,
    ),
    Column(
        "calls", pl.Int64, "count", "The number of the module's calls, without recomputation.", True
    ),
    Column(
        "total_device_time", pl.Int64, "ns", "Device time of the module and the modules within it."
    ),
    Column("device_time", pl.Int64, "ns", "Device time of work that the module launched itself."),
    Column("total_cpu_time", pl.Int64, "ns", "Host time of the module and the modules within it."),
    Column(
        "self_cpu_time", pl.Int64, "ns", "Host time of the module without the modules within it."
    ),
    Column(
        "forward_device_time",
        pl.Int64,
        "ns",
        "The part of the total device time outside the backward pass.",
    ),
    Column(
        "backward_device_time",
        pl.Int64,
        "ns",
        "The part of the total device time in the backward pass.",
    ),
    Column(
        "recompute_device_time",
        pl.Int64,
        "ns",
        "The part of the total device time spent recomputing in the backward pass.",
    ),
    Column(
        "forward_cpu_time",
        pl.Int64,
        "ns",
        "The part of the total host time outside the backward pass.",
    ),
    Column(
        "backward_cpu_time", pl.Int64, "ns", "The part of the total host time in the backward pass."
    ),
    Column(
        "recompute_cpu_time",
        pl.Int64,
        "ns",
        "The part of the total host time spent recomputing in the backward pass.",
    ),
    Column(
        "device_slices",
        pl.Int64,
        "count",
        "The number of kernels, copies and fills of the module and the modules within it.",
    ),
    Column(
        "model_flops",
        pl.Int64,
        "flops",
        "Modelled FLOPs of the module and the modules within it.",
        True,
    ),
    Column(
        "device_memory",
        pl.Int64,
        "bytes",
        "Device bytes allocated minus released, including the modules within it.",
        True,
    ),
    Column(
        "cpu_memory",
        pl.Int64,
        "bytes",
        "Host bytes allocated minus released, including the modules within it.",
        True,
    ),
    Column(
        "recomputes",
        pl.Int64,
        "count",
        "How often the backward pass called the module again to recompute it.",
        True,
    ),
    Column("name", pl.String, "name", "The module's class and number, or its attribute.", True),
    Column("class", pl.String, "name", "The module's class.", True),
    Column(
        "instance",
        pl.Int64,
        "id",
        "The number of the instance within its class; null if unknown.",
        True,
    ),
    Column("depth", pl.Int64, "count", "The number of enclosing modules.", True),
    Column(
        "id", pl.Int64, "id", "The number of the row, to which the column `parent` refers.", True
    ),
    Column(
        "parent", pl.Int64, "id", "The number of the enclosing module's row; null for a root.", True
    ),
    needs=("modules",),
    sums=("calls", "device_time", "self_cpu_time"),
)
def modules(trace: Trace, *, by: Literal["module", "class"] = "module") -> pl.DataFrame:
    """The tree of nn.Modules with their times, FLOPs and memory, most expensive branch first.

    Work counts to the innermost module around it; work of the backward pass to the module of its
    forward operator. Work outside all modules (optimizers, losses, loading) is in the last row, so
    that the rows' own times add up to all recorded time. By class, a row is the sum over all
    modules of a class, in order of cost; a module within another of its class counts once in
    totals.
    """
    tree = find_training_passes(trace)
    found = module_tree(trace, tree)
    if not found.instances:
        return _with_all_view_columns(pl.DataFrame())
    own = _own_costs_of_modules(trace, tree, found.node, len(found.instances))
    outside = {name: int(much[-1]) for name, much in own.items()}
    own = {name: much[:-1] for name, much in own.items()}
    rows = _rows_by_module(found, own) if by == "module" else _rows_by_class(found, own)
    totalled = {_TOTAL_COLUMN_BY_OWN_COLUMN.get(name, name): much for name, much in outside.items()}
    rows = pl.concat([rows, pl.DataFrame({**outside, **totalled})], how="diagonal")
    if not trace.memory.height:
        rows = rows.with_columns(device_memory=None, cpu_memory=None)
    if not trace.op_args["input_shapes"].is_not_null().any():
        rows = rows.with_columns(model_flops=None)
    return _with_all_view_columns(rows)


def _with_all_view_columns(rows: pl.DataFrame) -> pl.DataFrame:
    columns = modules.columns
    if not rows.height:
        return pl.DataFrame(schema={column.name: column.dtype for column in columns})
    missing = [pl.lit(None).alias(c.name) for c in columns if c.name not in rows.columns]
    return rows.with_columns(missing).select(pl.col(c.name).cast(c.dtype) for c in columns)


def _own_costs_of_modules(
    trace: Trace, tree: PassTree, node: Ints, node_count: int
) -> dict[str, Ints]:
    """Returns each module's costs without inner modules, and last the costs outside modules."""
    entries = tree.entries
    cost = call_tree_entry_costs(trace, entries, device_work_by_launching_entry(trace, entries))
    amounts = {
        "device_slices": cost.device_slices,
        "model_flops": _model_flops_by_call_entry(trace, entries.place, entries.id.size),
        "device_memory": cost.device_memory,
        "cpu_memory": cost.cpu_memory,
    }
    at = np.where(node == NO_SLICE, node_count, node)
    own = {}
    for kind, much in {"device_time": cost.device, "cpu_time": entries.self_time}.items():
        parts = np.zeros((node_count + 1) * len(_PASS_CODE_BY_NAME), np.int64)
        np.add.at(parts, at * len(_PASS_CODE_BY_NAME) + tree.pass_code, much)
        by_pass = parts.reshape(node_count + 1, len(_PASS_CODE_BY_NAME))
        own["self_cpu_time" if kind == "cpu_time" else kind] = by_pass.sum(axis=1)
        own |= {
            f"{name}_{kind}": by_pass[:, code].copy() for name, code in _PASS_CODE_BY_NAME.items()
        }
    for name, much in amounts.items():
        own[name] = np.zeros(node_count + 1, np.int64)
        np.add.at(own[name], at, much)
    for name, lost in {"device_time": cost.lost["device"], **cost.lost}.items():
        if name in own:
            own[name][-1] += lost
    return own


def _model_flops_by_call_entry(trace: Trace, entry_of_slice: Ints, entry_count: int) -> Ints:
    """Returns the FLOPs of each call tree slice, computed from operators' input shapes."""
    host = self_times(trace)
    work = modelled_work_of_operators(trace, host, tensor_core_times_by_operator(trace, host))
    found = np.zeros(entry_count, np.int64)
    at = entry_of_slice[host.id]
    np.add.at(found, at[at != NO_SLICE], work.flops[at != NO_SLICE])
    return found


def _rows_by_module(module_nodes: ModuleTree, own_costs: dict[str, Ints]) -> pl.DataFrame:
    table = _own_and_total_costs_of_modules(module_nodes, own_costs)
    steps = nodes_by_level(module_nodes.parent)
    depth = np.zeros(module_nodes.parent.size, np.int64)
    for number, level in enumerate(steps):
        depth[level] = number
    table = table.with_columns(
        path=pl.Series(module_nodes.module_paths(), dtype=pl.String),
        name=pl.Series([one.name for one in module_nodes.instances], dtype=pl.String),
        instance=pl.Series([one.number for one in module_nodes.instances], dtype=pl.Int64),
        depth=depth,
    )
    device, host = (table[name].to_numpy() for name in _SORT_COLUMNS_OF_CLASSES)
    order = node_reading_order(module_nodes.parent, device if device.any() else host)
    row = np.empty(order.size, np.int64)
    row[order] = np.arange(order.size)
    above = np.where(module_nodes.parent == NO_SLICE, NO_SLICE, row[module_nodes.parent])
    parent = pl.Series(above).set(pl.Series(above == NO_SLICE), None)
    return table.with_columns(id=row, parent=parent)[order]


def _rows_by_class(module_nodes: ModuleTree, own_costs: dict[str, Ints]) -> pl.DataFrame:
    table = _own_and_total_costs_of_modules(module_nodes, own_costs)
    kind = table["class"].rank("dense").to_numpy().astype(np.int64)
    outer = is_outermost_of_key(module_nodes.parent, kind)
    inclusive = [
        name
        for name in table.columns
        if name not in {"class", "calls", *_TOTAL_COLUMN_BY_OWN_COLUMN}
    ]
    return (
        table.with_columns(pl.when(pl.Series(outer)).then(name).otherwise(0) for name in inclusive)
        .group_by("class")
        .agg(pl.all().sum())
        .sort(*_SORT_COLUMNS_OF_CLASSES, "class", descending=[True, True, False])
        .with_columns(path="class")
    )


def _own_and_total_costs_of_modules(
    module_nodes: ModuleTree, own_costs: dict[str, Ints]
) -> pl.DataFrame:
    """Returns one row per module: own costs, and totals including the modules within it."""
    steps = nodes_by_level(module_nodes.parent)
    inclusive = {
        _TOTAL_COLUMN_BY_OWN_COLUMN.get(n, n): subtree_totals_by_level(
            module_nodes.parent, steps, much
        )
        for n, much in own_costs.items()
    }
    return pl.DataFrame(
        {
            **{name: own_costs[name] for name in _TOTAL_COLUMN_BY_OWN_COLUMN},
            **inclusive,
            "calls": module_nodes.calls,
            "recomputes": module_nodes.recomputes,
            "class": pl.Series([one.kind for one in module_nodes.instances], dtype=pl.String),
        }
    )
