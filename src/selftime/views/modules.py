"""What each nn.Module of the program costs, in the tree that they form."""

from typing import Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.call_tree.costs import costs, launched
from selftime.analysis.call_tree.forest import levels, preorder, totals
from selftime.analysis.call_tree.module_tree import ModuleTree, module_tree
from selftime.analysis.call_tree.passes import BACKWARD, FORWARD, RECOMPUTE, Passes, passes_of
from selftime.analysis.call_tree.self_times import outermost, self_times
from selftime.analysis.models.modelled import modelled, tensor_cores
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view

_PASSES: Final = {"forward": FORWARD, "backward": BACKWARD, "recompute": RECOMPUTE}
_TOTAL_OF: Final = {"device_time": "total_device_time", "self_cpu_time": "total_cpu_time"}
"""Of the other amounts the table has the totals alone."""
_WEIGHTS: Final = ("total_device_time", "total_cpu_time")
"""What is heaviest: device time where there is any."""


@view(
    Column("path", pl.String, "name", "The modules around it and itself; null is outside.", True),
    Column("calls", pl.Int64, "count", "How many times it was called, recomputation apart.", True),
    Column("total_device_time", pl.Int64, "ns", "Device time of it and the modules within."),
    Column("device_time", pl.Int64, "ns", "Device time that it launched itself."),
    Column("total_cpu_time", pl.Int64, "ns", "Host time of it and the modules within."),
    Column("self_cpu_time", pl.Int64, "ns", "Host time in it and in no module within."),
    Column("forward_device_time", pl.Int64, "ns", "Of the total: not in the backward pass."),
    Column("backward_device_time", pl.Int64, "ns", "Of the total: in the backward pass."),
    Column("recompute_device_time", pl.Int64, "ns", "Of the total: recomputed in that."),
    Column("forward_cpu_time", pl.Int64, "ns", "Of the total host time: not in the backward."),
    Column("backward_cpu_time", pl.Int64, "ns", "Of the total host time: in the backward pass."),
    Column("recompute_cpu_time", pl.Int64, "ns", "Of the total host time: recomputed in that."),
    Column("device_slices", pl.Int64, "count", "Kernels, copies and fills, with those within."),
    Column("model_flops", pl.Int64, "flops", "Operations by model, with those within.", True),
    Column("device_memory", pl.Int64, "bytes", "Device bytes kept, with those within.", True),
    Column("cpu_memory", pl.Int64, "bytes", "Host bytes kept, with those within.", True),
    Column("recomputes", pl.Int64, "count", "How many times it was recomputed.", True),
    Column("name", pl.String, "name", "Its class and number, or its attribute.", True),
    Column("class", pl.String, "name", "Its class.", True),
    Column("instance", pl.Int64, "id", "Which instance of its class it is.", True),
    Column("depth", pl.Int64, "count", "How many modules are around it.", True),
    Column("id", pl.Int64, "id", "The row's number, to which `parent` refers.", True),
    Column("parent", pl.Int64, "id", "The row of the module around it.", True),
    needs=("modules",),
    sums=("calls", "device_time", "self_cpu_time"),
)
def modules(trace: Trace, *, by: Literal["module", "class"] = "module") -> pl.DataFrame:
    """The tree of modules, the heaviest branch first, with all that ran in each.

    Work counts to the innermost module around it; that of the backward pass to the module of its
    forward operator. What is in no module (optimizers, losses, loading) is in the last row, so that
    the rows' own times add up to all there is. A row a class is what all modules of a class cost,
    in their own order; one within another of its class counts once in totals.
    """
    tree = passes_of(trace)
    found = module_tree(trace, tree)
    if not found.instances:
        return _declared(pl.DataFrame())
    own = _own(trace, tree, found.node, len(found.instances))
    outside = {name: int(much[-1]) for name, much in own.items()}
    own = {name: much[:-1] for name, much in own.items()}
    rows = _by_module(found, own) if by == "module" else _by_class(found, own)
    totalled = {_TOTAL_OF.get(name, name): much for name, much in outside.items()}
    rows = pl.concat([rows, pl.DataFrame({**outside, **totalled})], how="diagonal")
    if not trace.memory.height:
        rows = rows.with_columns(device_memory=None, cpu_memory=None)
    if not trace.op_args["input_shapes"].is_not_null().any():
        rows = rows.with_columns(model_flops=None)
    return _declared(rows)


def _declared(rows: pl.DataFrame) -> pl.DataFrame:
    columns = modules.columns
    if not rows.height:
        return pl.DataFrame(schema={column.name: column.dtype for column in columns})
    missing = [pl.lit(None).alias(c.name) for c in columns if c.name not in rows.columns]
    return rows.with_columns(missing).select(pl.col(c.name).cast(c.dtype) for c in columns)


def _own(trace: Trace, tree: Passes, node: Ints, count: int) -> dict[str, Ints]:
    """What belongs to each node and to none within, shape (count + 1,); to no node: the last."""
    entries = tree.entries
    cost = costs(trace, entries, launched(trace, entries))
    amounts = {
        "device_slices": cost.device_slices,
        "model_flops": _operations(trace, entries.place, entries.id.size),
        "device_memory": cost.device_memory,
        "cpu_memory": cost.cpu_memory,
    }
    at = np.where(node == NONE, count, node)
    own = {}
    for kind, much in {"device_time": cost.device, "cpu_time": entries.self_time}.items():
        parts = np.zeros((count + 1) * len(_PASSES), np.int64)
        np.add.at(parts, at * len(_PASSES) + tree.running, much)
        by_pass = parts.reshape(count + 1, len(_PASSES))
        own["self_cpu_time" if kind == "cpu_time" else kind] = by_pass.sum(axis=1)
        own |= {f"{name}_{kind}": by_pass[:, code].copy() for name, code in _PASSES.items()}
    for name, much in amounts.items():
        own[name] = np.zeros(count + 1, np.int64)
        np.add.at(own[name], at, much)
    for name, lost in {"device_time": cost.lost["device"], **cost.lost}.items():
        if name in own:
            own[name][-1] += lost
    return own


def _operations(trace: Trace, place: Ints, size: int) -> Ints:
    """Operations of each entry itself, by the models of operators."""
    host = self_times(trace)
    work = modelled(trace, host, tensor_cores(trace, host))
    found = np.zeros(size, np.int64)
    at = place[host.id]
    np.add.at(found, at[at != NONE], work.flops[at != NONE])
    return found


def _by_module(found: ModuleTree, own: dict[str, Ints]) -> pl.DataFrame:
    table = _with_totals(found, own)
    steps = levels(found.parent)
    depth = np.zeros(found.parent.size, np.int64)
    for number, level in enumerate(steps):
        depth[level] = number
    table = table.with_columns(
        path=pl.Series(found.paths(), dtype=pl.String),
        name=pl.Series([one.name for one in found.instances], dtype=pl.String),
        instance=pl.Series([one.number for one in found.instances], dtype=pl.Int64),
        depth=depth,
    )
    device, host = (table[name].to_numpy() for name in _WEIGHTS)
    order = preorder(found.parent, device if device.any() else host)
    row = np.empty(order.size, np.int64)
    row[order] = np.arange(order.size)
    above = np.where(found.parent == NONE, NONE, row[found.parent])
    parent = pl.Series(above).set(pl.Series(above == NONE), None)
    return table.with_columns(id=row, parent=parent)[order]


def _by_class(found: ModuleTree, own: dict[str, Ints]) -> pl.DataFrame:
    table = _with_totals(found, own)
    kind = table["class"].rank("dense").to_numpy().astype(np.int64)
    outer = outermost(found.parent, kind)
    inclusive = [name for name in table.columns if name not in {"class", "calls", *_TOTAL_OF}]
    return (
        table.with_columns(pl.when(pl.Series(outer)).then(name).otherwise(0) for name in inclusive)
        .group_by("class")
        .agg(pl.all().sum())
        .sort(*_WEIGHTS, "class", descending=[True, True, False])
        .with_columns(path="class")
    )


def _with_totals(found: ModuleTree, own: dict[str, Ints]) -> pl.DataFrame:
    """One row a node: its own times, and everything with what is within."""
    steps = levels(found.parent)
    inclusive = {_TOTAL_OF.get(n, n): totals(found.parent, steps, much) for n, much in own.items()}
    return pl.DataFrame(
        {
            **{name: own[name] for name in _TOTAL_OF},
            **inclusive,
            "calls": found.calls,
            "recomputes": found.recomputes,
            "class": pl.Series([one.kind for one in found.instances], dtype=pl.String),
        }
    )
