"""The host and device time of each source line."""

import polars as pl

from selftime.analysis.call_tree.line_costs import line_costs
from selftime.analysis.operator_dtypes import is_operator_computing_in_dtype
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view


@view(
    Column(
        "file", pl.String, "text", "The source file; null for time with no known source line.", True
    ),
    Column("line", pl.Int32, "id", "The line's number in its source file, from 1.", True),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column(
        "how",
        pl.String,
        "name",
        LINE_EVIDENCE_DOC,
        True,
    ),
    Column("device_time", pl.Int64, "ns", "Device time of the work that the line launched itself."),
    Column(
        "self_cpu_time",
        pl.Int64,
        "ns",
        "Host time in the line itself, without lines that it called.",
    ),
    Column(
        "waits",
        pl.Int64,
        "ns",
        "The part of `self_cpu_time` spent waiting: for a device, a lock, a timer or a socket.",
    ),
    Column(
        "total_device_time",
        pl.Int64,
        "ns",
        "Device time of the line and all that it called; null if unknown.",
        True,
    ),
    Column(
        "total_cpu_time",
        pl.Int64,
        "ns",
        "Host time of the line and all that it called; null if unknown.",
        True,
    ),
    Column(
        "operators",
        pl.Int64,
        "count",
        "The number of operators, annotations and calls that the line itself ran.",
    ),
    Column(
        "backward_device_time",
        pl.Int64,
        "ns",
        "The part of the line's own device time in the backward pass.",
    ),
    Column(
        "recompute_device_time",
        pl.Int64,
        "ns",
        "The part of the line's own device time spent recomputing in the backward pass.",
    ),
    Column(
        "backward_cpu_time",
        pl.Int64,
        "ns",
        "The part of the line's own host time in the backward pass.",
    ),
    Column(
        "recompute_cpu_time",
        pl.Int64,
        "ns",
        "The part of the line's own host time spent recomputing in the backward pass.",
    ),
    Column(
        "python_time",
        pl.Int64,
        "ns",
        "The part of the line's own host time in Python, outside operators and calls.",
    ),
    Column(
        "device_slices",
        pl.Int64,
        "count",
        "The number of kernels, copies and fills that the line itself launched.",
    ),
    Column(
        "cpu_memory",
        pl.Int64,
        "bytes",
        "Host bytes that the line allocated minus those released; null if not recorded.",
        True,
    ),
    Column(
        "device_memory",
        pl.Int64,
        "bytes",
        "Device bytes that the line allocated minus those released; null if not recorded.",
        True,
    ),
    Column("first", pl.Int64, "instant", "When the line first ran.", True),
    Column(
        "since_batch",
        pl.Int64,
        "ns",
        "Shortest time from the start of data loading, or else of a step, to the line.",
        True,
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
    trace: Trace, *, dtype: str = "", within: str = "", counted: bool = False, top: RowLimit = 0
) -> pl.DataFrame:
    """Host and device time of each source line, most device time first.

    Lines with equal device time are in order of their host time less waits.

    Every operator, call and Python frame counts to the innermost line of the user's code around it,
    else of a library's. What has neither is in the row without a file, so that the rows add up to
    all recorded time. Backward operators, and what they recompute, count to the line of the forward
    operator. Operators that accumulate gradients, and all-reduce them inside, count to the line
    that called `backward`, if known. `kernels`, `copies` and `launches` by line add up to the same.
    Python's own time counts to the line that defines the function. In totals a line counts once
    however often it is on the stack; which lines a line called is only known where stacks were
    recorded.

    `waits` is host time of synchronising calls and of Python frames that wait. `syncs` also counts
    copies that block the host, and only waits for a device.

    `dtype` keeps operators that compute in that dtype: all their floating-point inputs that have
    dimensions have it. `within` keeps what began while a slice was open on its thread whose name
    has that prefix, `counted` what ran in the steps that count for medians, `top` the first rows; 0
    keeps all.
    """
    if dtype and not is_operator_computing_in_dtype(trace, trace.op_args["id"], dtype).any():
        return pl.DataFrame(schema={column.name: column.dtype for column in lines.columns})
    rows = line_costs(trace, dtype=dtype, within_slice_named=within, counted_steps_only=counted)
    rows = rows.select(pl.col(column.name).cast(column.dtype) for column in lines.columns).sort(
        "device_time",
        pl.col("self_cpu_time") - pl.col("waits"),
        "self_cpu_time",
        *SOURCE_SITE_COLUMNS,
        descending=[True, True, True, False, False, False, False],
    )
    return rows.head(top) if top > 0 else rows
