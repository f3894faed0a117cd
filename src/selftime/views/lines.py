"""What each line of the user's source costs."""

import polars as pl

from selftime.analysis.call_tree.line_costs import line_costs
from selftime.analysis.operator_dtypes import computes_in
from selftime.analysis.sites import SITE
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import Top, view


@view(
    Column(
        "file", pl.String, "text", "The source file; null for time with no known source line.", True
    ),
    Column("line", pl.Int32, "id", "The line, from 1.", True),
    Column("function", pl.String, "name", "The function it is in.", True),
    Column("how", pl.String, "name", "How it is known: stack, stamp (it ran) or definition.", True),
    Column("device_time", pl.Int64, "ns", "Device time that the line launched itself."),
    Column("self_cpu_time", pl.Int64, "ns", "Host time in the line itself, in no line it called."),
    Column("waits", pl.Int64, "ns", "Of that: it waited for a device, a lock, a timer, a socket."),
    Column("total_device_time", pl.Int64, "ns", "Device time with that of what it called.", True),
    Column("total_cpu_time", pl.Int64, "ns", "Host time with that of what it called.", True),
    Column("operators", pl.Int64, "count", "Operators, annotations and calls that it ran."),
    Column("backward_device_time", pl.Int64, "ns", "Of its device time: in the backward pass."),
    Column("recompute_device_time", pl.Int64, "ns", "Of its device time: recomputed in that."),
    Column("backward_cpu_time", pl.Int64, "ns", "Of its host time: in the backward pass."),
    Column("recompute_cpu_time", pl.Int64, "ns", "Of its host time: recomputed in that."),
    Column("python_time", pl.Int64, "ns", "Of its host time: in Python, in no operator or call."),
    Column("device_slices", pl.Int64, "count", "Kernels, copies and fills that it launched."),
    Column("cpu_memory", pl.Int64, "bytes", "Host bytes that it allocated less released.", True),
    Column("device_memory", pl.Int64, "bytes", "Device bytes, likewise.", True),
    Column("first", pl.Int64, "instant", "When it ran first.", True),
    Column(
        "since_batch", pl.Int64, "ns", "Least time to it from a batch's loading, or a step.", True
    ),
    needs=("stacks",),
    sums=(
        "device_time",
        "self_cpu_time",
        "waits",
        "operators",
        "backward_device_time",
        "recompute_device_time",
        "backward_cpu_time",
        "recompute_cpu_time",
        "python_time",
        "device_slices",
        "cpu_memory",
        "device_memory",
    ),
)
def lines(
    trace: Trace, *, dtype: str = "", within: str = "", counted: bool = False, top: Top = 0
) -> pl.DataFrame:
    """Host and device time by source line, most device time first, then host time less waits.

    Every operator, call and Python frame counts to the innermost line of the user's code around it,
    else of a library's. What has neither counts elsewhere, so that the rows add up to all there is.
    Backward operators, and what they recompute, count to the line of the forward operator; what
    adds to gradients, and all-reduces them within, to the line that called `backward`, if known.
    `kernels`, `copies` and `launches` by line add up to the same. Python's own time counts to the
    line that defines the function. In totals a line counts once however
    often it is on the stack; what a line called is known where stacks were recorded.

    `dtype` keeps operators that compute in that dtype: all their inputs of a floating dtype that
    have dimensions are of it. `within` keeps what ran inside slices whose name begins so, `counted`
    what ran in the steps that count for medians, `top` the first rows; 0 keeps all.
    """
    if dtype and not computes_in(trace, trace.op_args["id"], dtype).any():
        return pl.DataFrame(schema={column.name: column.dtype for column in lines.columns})
    rows = line_costs(trace, dtype=dtype, within=within, counted=counted)
    rows = rows.select(pl.col(column.name).cast(column.dtype) for column in lines.columns).sort(
        "device_time",
        pl.col("self_cpu_time") - pl.col("waits"),
        "self_cpu_time",
        *SITE,
        descending=[True, True, True, False, False, False, False],
    )
    return rows.head(top) if top > 0 else rows
