"""What occupies a device's memory when most memory is allocated."""

from typing import Annotated

import polars as pl

from selftime.analysis.memory.block_grouping import GROUPING_COLUMNS_BY_OPTION, grouping_columns
from selftime.analysis.memory.memory_peak import memory_at_peaks, peak_search_range
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
    Column(
        "bytes",
        pl.Int64,
        "bytes",
        "Bytes allocated at the device's memory peak; a device's rows add up to its total.",
    ),
    Column(
        "share",
        pl.Float64,
        "ratio",
        "The row's bytes as a share of all memory allocated on the device at the peak.",
        True,
    ),
    Column(
        "growth_per_step",
        pl.Int64,
        "bytes",
        "By how many bytes the row's memory grows per step; null if unknown.",
        True,
    ),
    *MEMORY_HOLDER_COLUMNS,
    *MEMORY_LINE_COLUMNS,
    MEMORY_FUNCTION_COLUMN,
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "blocks",
        pl.Int64,
        "count",
        "The number of memory blocks in the row; null if unknown.",
        True,
    ),
    Column(
        "allocated",
        pl.Int64,
        "instant",
        "When the first memory block of the row was allocated; null if unknown.",
        True,
    ),
    Column(
        "released",
        pl.Int64,
        "instant",
        "When the last memory block of the row was released; null if any was not released.",
        True,
    ),
    *MEMORY_DEVICE_COLUMNS,
    Column("time", pl.Int64, "instant", "When the device's allocated memory is at its peak."),
    needs=("memory",),
    sums=("bytes", "blocks"),
)
def memory_peak(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    by: Annotated[
        str, PlusJoinedWords(tuple(GROUPING_COLUMNS_BY_OPTION))
    ] = "category+operator+line",
    device: str = "",
    step: int = -1,
    at: int = -1,
    start: int = 0,
    end: int = 0,
) -> pl.DataFrame:
    """The allocated memory at each device's peak, by what allocated it, largest first.

    `by` is line, module, operator or category, or several joined by `+`. The peak is the first
    instant with the highest total: of the recording, of one `step`, between the instants `start`
    and `end`, or else the instant `at`, all in ns. Memory without an allocation in the recording is
    from `before the recording`; where totals and records contradict each other the difference is
    `unaccounted`.

    A block's category depends on when it was allocated and how long it lived. An `input` was
    loaded, or copied from the host. A `temporary` was released in the operator or optimizer's step
    that allocated it, or within the same pass and step. An `activation` was allocated in the
    forward pass and in use when the backward pass began. A `gradient` was allocated in the backward
    pass and outlived it. `optimizer state` was allocated by an optimizer's step and outlived the
    step; a `parameter` was allocated where torch.nn built or moved a module, and outlived two
    steps. All else is `unknown`.

    A row grows if its bytes at the ends of the steps never fall and keep rising: a leak. Rows that
    grow are listed even if they have nothing at the peak.
    """
    search_range = peak_search_range(trace, start=start, end=end, step=step, at=at)
    return memory_peak.table_of(memory_at_peaks(trace, device, search_range, grouping_columns(by)))
