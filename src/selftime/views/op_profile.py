"""Modules or categories, their operators and kernels: time, and how near it is to the peak."""

from typing import Literal

import polars as pl

from selftime.analysis.models.operator_efficiency import BYTES_SHARE_COLUMN, FLOPS_SHARE_COLUMN
from selftime.analysis.op_profile_tree import has_profile_of_modules, op_profile_rows
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import Share, view


@view(
    Column("name", pl.String, "name", "The module, category, operator, input shapes or kernel."),
    Column(
        "kind",
        pl.String,
        "name",
        "What the row is: module, outside, category, operator, annotation, call, frame, unknown, "
        "shape, kernel or other.",
    ),
    Column("total_time", pl.Int64, "ns", "Time of the row and of all rows within it."),
    Column(
        "share", pl.Float64, "ratio", "`total_time` divided by the summed time of the whole tree."
    ),
    Column(
        "own_time",
        pl.Int64,
        "ns",
        "Time of the row without that of modules within it.",
    ),
    Column(
        "achieved_share",
        pl.Float64,
        "ratio",
        "Time that the work takes at the device's peak, as a share of `known_time`.",
        True,
    ),
    Column(
        "wasted_time",
        pl.Int64,
        "ns",
        "The part of `known_time` beyond what the work takes at the device's peak.",
        True,
    ),
    Column(
        "known_time",
        pl.Int64,
        "ns",
        "The part of `total_time` in operators whose work is modelled and whose peak is known.",
    ),
    Column("forward_time", pl.Int64, "ns", "The part of `total_time` outside the backward pass."),
    Column("backward_time", pl.Int64, "ns", "The part of `total_time` in the backward pass."),
    Column(
        "recompute_time",
        pl.Int64,
        "ns",
        "The part of `total_time` spent recomputing in the backward pass.",
    ),
    Column(
        "flops_rate",
        pl.Float64,
        "flops/s",
        "Modelled FLOPs divided by `total_time`: a lower bound of the achieved rate.",
        True,
    ),
    FLOPS_SHARE_COLUMN,
    Column(
        "bytes_rate",
        pl.Float64,
        "bytes/s",
        "Modelled bytes divided by `total_time`: a lower bound of the achieved bandwidth.",
        True,
    ),
    BYTES_SHARE_COLUMN,
    Column(
        "count",
        pl.Int64,
        "count",
        "The number of kernels, copies and fills; of the host's time, of slices.",
    ),
    Column("depth", pl.Int64, "count", "The number of rows that enclose the row."),
    Column(
        "id",
        pl.Int64,
        "id",
        "The number of the row, to which the column `parent` of other rows refers.",
    ),
    Column(
        "parent",
        pl.Int64,
        "id",
        "The `id` of the row of the enclosing row; null for a root.",
        True,
    ),
    needs=("work",),
)
def op_profile(
    trace: Trace,
    *,
    by: Literal["auto", "module", "category"] = "auto",
    metric: Literal["auto", "host", "device"] = "auto",
    only: Literal["all", "forward", "backward", "recompute"] = "all",
    min_share: Share = 0.0005,
) -> pl.DataFrame:
    """Modules or categories, their operators and kernels: time, and how near it is to the peak.

    `by` module has modules, within them their operators, and within these their kernels; category
    has kinds of work such as gemm, within them operators, their input shapes, and kernels; auto is
    by module where modules were recorded. Work counts to the innermost module around it, work of
    the backward pass to the module of its forward operator. `metric` is the time that is divided:
    of the device (auto) where there is any, or of the host. `only` keeps one training pass.

    Time belongs to the innermost operator whose work is modelled, else to the innermost operator.
    At the device's peak its operations take what they need in their dtype, or its bytes what they
    need at the memory's bandwidth, whichever is longer: `achieved_share` is that time as a share of
    the time that it took, each run at most 1. It is known of `known_time` alone; the rest has no
    model, or a device whose peak is unknown. Of a CPU it is known where `selftime run` measured the
    peak. Kernels have the share of the operator that launched them.

    Operators, shapes and kernels below `min_share` of the whole are merged into `(other)`.
    """
    on_device = metric == "device" or (metric == "auto" and trace.device_args.height > 0)
    by_module = by == "module" or (by == "auto" and has_profile_of_modules(trace))
    if by_module and not has_profile_of_modules(trace):
        return op_profile.table_of(pl.DataFrame())
    rows = op_profile_rows(
        trace,
        by_module=by_module,
        on_device=on_device,
        only=None if only == "all" else only,
        min_share=min_share,
    )
    return op_profile.table_of(rows)
