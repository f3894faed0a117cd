"""Memory by operator: bytes that it allocated and kept, alone and with the operators it called."""

from typing import Literal

import polars as pl

from selftime.analysis.memory.operator_memory import memory_of_operators
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import (
    LINE_EVIDENCE_DOC,
    MEMORY_DEVICE_COLUMNS,
    MEMORY_FUNCTION_COLUMN,
    MEMORY_LINE_COLUMNS,
    view,
)


@view(
    Column(
        "name",
        pl.String,
        "name",
        "The operator or annotation, or `outside operators`; null if not by name.",
        True,
    ),
    *MEMORY_LINE_COLUMNS,
    MEMORY_FUNCTION_COLUMN,
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "module",
        pl.String,
        "name",
        "The innermost nn.Module around the operator; null if none or not by module.",
        True,
    ),
    Column(
        "self_size_increase",
        pl.Int64,
        "bytes",
        "Bytes that the operator itself allocated, minus those that it released.",
    ),
    Column(
        "size_increase",
        pl.Int64,
        "bytes",
        "Bytes allocated minus released by the operator and all that it called.",
    ),
    Column("self_allocation_size", pl.Int64, "bytes", "Bytes that the operator itself allocated."),
    Column(
        "allocation_size",
        pl.Int64,
        "bytes",
        "Bytes that the operator and all that it called allocated.",
    ),
    Column(
        "self_allocations", pl.Int64, "count", "The number of allocations by the operator itself."
    ),
    Column(
        "allocations",
        pl.Int64,
        "count",
        "The number of allocations by the operator and all that it called.",
    ),
    Column(
        "calls",
        pl.Int64,
        "count",
        "The number of times the operator ran; null if the row is not about operators.",
        True,
    ),
    *MEMORY_DEVICE_COLUMNS,
    needs=("memory",),
    sums=("self_size_increase", "self_allocation_size", "self_allocations"),
)
def memory_operators(
    trace: Trace,
    *,
    by: Literal["name", "line", "module"] = "name",
    device: str = "",
    start: int = 0,
    end: int = 0,
) -> pl.DataFrame:
    """Memory that operators allocated and released on each device, most bytes kept first.

    A record counts to the innermost operator or annotation around it on its own thread, and in
    totals to all that called it; an operator within itself counts once. Records outside all of them
    are in `outside operators`, so that a device's self size increases sum to the change of its
    curve. Rows are grouped by `name`, by the source `line` or by the `module` of the operators; a
    row without a line or module has those whose line or module is unknown. In an allocator's
    snapshot the lines are those of the records' own stacks. `device` keeps one type, `start` and
    `end` the records and calls that began between two instants, in ns.
    """
    rows = memory_of_operators(trace, by=by, device_type=device, start=start, end=end)
    return memory_operators.table_of(rows).sort(
        "self_size_increase",
        "allocation_size",
        "name",
        "file",
        "line",
        "module",
        descending=[True, True, False, False, False, False],
        nulls_last=True,
        maintain_order=True,
    )
