"""Sums the times, FLOPs and memory of each nn.Module, with and without the modules within it."""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.call_tree.costs import call_tree_entry_costs, device_work_by_launching_entry
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
    modelled_work_of_calls,
)
from selftime.analysis.slice_arguments import has_input_shapes
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

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


def costs_of_module_tree(trace: Trace, *, by_class: bool) -> pl.DataFrame:
    """Returns the times, FLOPs and memory of modules or classes of modules, the costliest first.

    The last row has the costs outside all modules; without modules there are no rows.
    """
    tree = find_training_passes(trace)
    found = module_tree(trace, tree)
    if not found.instances:
        return pl.DataFrame()
    own = _own_costs_of_modules(trace, tree, found.node, len(found.instances))
    outside = {name: int(much[-1]) for name, much in own.items()}
    own = {name: much[:-1] for name, much in own.items()}
    rows = _rows_by_class(found, own) if by_class else _rows_by_module(found, own)
    totalled = {_TOTAL_COLUMN_BY_OWN_COLUMN.get(name, name): much for name, much in outside.items()}
    rows = pl.concat([rows, pl.DataFrame({**outside, **totalled})], how="diagonal")
    if not trace.memory.height:
        rows = rows.with_columns(device_memory=None, cpu_memory=None)
    if not has_input_shapes(trace):
        rows = rows.with_columns(model_flops=None)
    return rows


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
    work = modelled_work_of_calls(trace)
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
