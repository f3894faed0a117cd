"""Each block of memory: what allocated it, and when it was released."""

import polars as pl

from selftime.analysis.memory.block_categories import categories_of_memory_blocks
from selftime.analysis.memory.block_holders import (
    operator_labels_of_memory_records,
    source_sites_of_memory_records,
    step_numbers,
)
from selftime.analysis.memory.blocks import memory_blocks_of_device_type
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, MEMORY_DEVICE_COLUMNS, RowLimit, view


@view(
    Column("size", pl.Int64, "bytes", "The size of the memory block in bytes."),
    Column(
        "duration",
        pl.Int64,
        "ns",
        "Time from the memory block's allocation to its release; null if either is unknown.",
        True,
    ),
    Column(
        "state",
        pl.String,
        "name",
        "The memory block's state: released, lives on, before the recording, unpaired, failed.",
    ),
    Column(
        "category",
        pl.String,
        "name",
        "What the memory block holds, such as a parameter or gradient; see `memory_peak`.",
    ),
    Column(
        "operator",
        pl.String,
        "name",
        "The operator that allocated the memory block; null if none.",
        True,
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file that allocated the memory block; null if unknown.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line that allocated the memory block; null if unknown.",
        True,
    ),
    Column(
        "function",
        pl.String,
        "name",
        "The function that contains the source line of the allocation.",
        True,
    ),
    Column(
        "how",
        pl.String,
        "name",
        LINE_EVIDENCE_DOC,
        True,
    ),
    Column(
        "allocated",
        pl.Int64,
        "instant",
        "When the memory block was allocated; null if not recorded.",
        True,
    ),
    Column(
        "released",
        pl.Int64,
        "instant",
        "When the memory block was released; null if not recorded.",
        True,
    ),
    Column(
        "release_operator",
        pl.String,
        "name",
        "The operator that released the memory block; null if none.",
        True,
    ),
    Column(
        "release_file",
        pl.String,
        "text",
        "The source file that released the memory block; null if unknown.",
        True,
    ),
    Column(
        "release_line",
        pl.Int32,
        "id",
        "The source line that released the memory block; null if unknown.",
        True,
    ),
    Column(
        "step",
        pl.Int64,
        "id",
        "The number of the step that allocated the memory block; null if unknown.",
        True,
    ),
    *MEMORY_DEVICE_COLUMNS,
    Column("address", pl.UInt64, "id", "The memory block's address; null if not recorded.", True),
    needs=("memory",),
    sums=("size",),
)
def memory_events(
    trace: Trace, *, device: str = "", step: int = -1, top: RowLimit = 0
) -> pl.DataFrame:
    """Every block of memory with its allocation and its release, largest first.

    An allocation and the next record of its address are one block if that record releases as many
    bytes. A block is `released`; or it `lives on` when the recording ends; or it is from `before
    the recording`, which has only its release; or it is `unpaired`, because the trace has no
    address for it (before PyTorch 1.10) or lacks a record; or its allocation `failed` for lack of
    memory. An operator that only allocates (`aten::empty`) is replaced by the one that called it.
    `device` keeps one type, such as `cuda`; `step` the blocks allocated in that step, `top` the
    largest.
    """
    table = memory_blocks_of_device_type(trace, device)
    if not table.height:
        return pl.DataFrame(schema={column.name: column.dtype for column in memory_events.columns})
    table = table.with_columns(step=step_numbers(trace, table["allocated"]))
    if step >= 0:
        table = table.filter(pl.col("step") == step)
    table = table.sort("size", "at", descending=[True, False])
    table = table.head(top) if top > 0 else table
    both = pl.concat([table["allocation"], table["release"]])
    sites, operators = (
        source_sites_of_memory_records(trace, both),
        operator_labels_of_memory_records(trace, both),
    )
    gained, lost = sites.head(table.height), sites.tail(table.height)
    return table.with_columns(
        gained,
        operator=operators.head(table.height),
        category=categories_of_memory_blocks(trace, table),
        duration=pl.col("released") - pl.col("allocated"),
        release_operator=operators.tail(table.height),
        release_file=lost["file"],
        release_line=lost["line"],
    ).select(pl.col(column.name).cast(column.dtype) for column in memory_events.columns)
