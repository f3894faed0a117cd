"""Times, FLOPs and memory of each nn.Module of the program, in the tree of modules."""

from typing import Literal

import polars as pl

from selftime.analysis.call_tree.module_costs import costs_of_module_tree
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


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
    Column(
        "device_time",
        pl.Int64,
        "ns",
        "Device time of work that the module launched itself, outside modules within it.",
    ),
    Column("total_cpu_time", pl.Int64, "ns", "Host time of the module and the modules within it."),
    Column(
        "self_cpu_time", pl.Int64, "ns", "Host time of the module without the modules within it."
    ),
    Column(
        "forward_device_time",
        pl.Int64,
        "ns",
        "The part of the module's `total_device_time` outside the backward pass.",
    ),
    Column(
        "backward_device_time",
        pl.Int64,
        "ns",
        "The part of the module's `total_device_time` in the backward pass.",
    ),
    Column(
        "recompute_device_time",
        pl.Int64,
        "ns",
        "The part of the module's `total_device_time` spent recomputing in the backward pass.",
    ),
    Column(
        "forward_cpu_time",
        pl.Int64,
        "ns",
        "The part of the module's `total_cpu_time` outside the backward pass.",
    ),
    Column(
        "backward_cpu_time",
        pl.Int64,
        "ns",
        "The part of the module's `total_cpu_time` in the backward pass.",
    ),
    Column(
        "recompute_cpu_time",
        pl.Int64,
        "ns",
        "The part of the module's `total_cpu_time` spent recomputing in the backward pass.",
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
        "Floating-point operations of the module and those within it, modelled from shapes.",
        True,
    ),
    Column(
        "device_memory",
        pl.Int64,
        "bytes",
        "Device bytes that the module and those within it allocated minus released.",
        True,
    ),
    Column(
        "cpu_memory",
        pl.Int64,
        "bytes",
        "Host bytes that the module and those within it allocated minus released.",
        True,
    ),
    Column(
        "recomputes",
        pl.Int64,
        "count",
        "How often the backward pass called the module again to recompute its output.",
        True,
    ),
    Column(
        "name",
        pl.String,
        "name",
        "The module's class and number, or the attribute that holds it.",
        True,
    ),
    Column("class", pl.String, "name", "The module's class.", True),
    Column(
        "instance",
        pl.Int64,
        "id",
        "The number of the module among those of its class; null if unknown.",
        True,
    ),
    Column("depth", pl.Int64, "count", "The number of modules that enclose the module.", True),
    Column(
        "id",
        pl.Int64,
        "id",
        "The number of the row, to which the column `parent` of other rows refers.",
        True,
    ),
    Column(
        "parent",
        pl.Int64,
        "id",
        "The `id` of the row of the enclosing module; null for a root.",
        True,
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
    return modules.table_of(costs_of_module_tree(trace, by_class=by == "class"))
