"""Where memory was released, and how long it lived, by where it was allocated."""

from typing import Annotated

import polars as pl

from selftime.analysis.memory.block_grouping import GROUPING_COLUMNS_BY_OPTION, grouping_columns
from selftime.analysis.memory.block_lifetimes import memory_block_lifetimes
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import (
    LINE_EVIDENCE_DOC,
    MEMORY_DEVICE_COLUMNS,
    MEMORY_FUNCTION_COLUMN,
    MEMORY_HOLDER_COLUMNS,
    MEMORY_LINE_COLUMNS,
    PlusJoinedWords,
    view,
)


@view(
    Column("bytes", pl.Int64, "bytes", "Bytes that were allocated there and released here."),
    Column("blocks", pl.Int64, "count", "The number of memory blocks in the row."),
    Column(
        "median_lifetime",
        pl.Int64,
        "ns",
        "The median time from allocation to release; null if not released.",
        True,
    ),
    *MEMORY_LINE_COLUMNS,
    Column("release_file", pl.String, "text", "The source file that released it.", True),
    Column("release_line", pl.Int32, "id", "The source line that released it.", True),
    Column(
        "alive",
        pl.Int64,
        "bytes",
        "Bytes of it that are not released when the recording ends; null if none.",
        True,
    ),
    Column(
        "growth_per_step",
        pl.Int64,
        "bytes",
        "By how many bytes the row grows per step; null if it does not, or if that is unknown.",
        True,
    ),
    Column(
        "longest_lifetime",
        pl.Int64,
        "ns",
        "The longest time from allocation to release; null if not released.",
        True,
    ),
    *MEMORY_HOLDER_COLUMNS,
    Column("release_operator", pl.String, "name", "The operator that released it.", True),
    MEMORY_FUNCTION_COLUMN,
    Column("release_function", pl.String, "name", "The function that contains that line.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column("allocated", pl.Int64, "instant", "When the first block of the row was allocated."),
    *MEMORY_DEVICE_COLUMNS,
    needs=("memory",),
    sums=("bytes", "blocks", "alive"),
)
def memory_lifetimes(
    trace: Trace,
    *,
    by: Annotated[str, PlusJoinedWords(tuple(GROUPING_COLUMNS_BY_OPTION))] = "line",
    device: str = "",
    start: int = 0,
    end: int = 0,
) -> pl.DataFrame:
    """Where memory was released and how long it lived, by what allocated it.

    Allocations are grouped by line, module, operator or category, or several joined by `+`, and
    have a row for each place of release; what grows comes first. What is not released when the
    recording ends has a row without a place: if its bytes at the ends of the steps never fall and
    keep rising, it is a leak. Blocks from before the recording are left out. `device` keeps one
    type, such as `cuda`; `start` and `end` what was allocated between two instants, in ns.
    """
    rows = memory_block_lifetimes(trace, device, grouping_columns(by), start=start, end=end)
    return memory_lifetimes.table_of(rows)
