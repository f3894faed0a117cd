"""Blocks of memory, one by one: who allocated each, and when it was released."""

import polars as pl

from selftime.analysis.memory.blocks import blocks_of
from selftime.analysis.memory.holders import categories, operator_labels, record_sites, step_numbers
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import Top, view


@view(
    Column("size", pl.Int64, "bytes", "Its bytes."),
    Column("duration", pl.Int64, "ns", "From its allocation to its release.", True),
    Column(
        "state",
        pl.String,
        "name",
        "One of released, lives on, before the recording, unpaired, failed.",
    ),
    Column("category", pl.String, "name", "What it is for, as `memory_peak` tells."),
    Column("operator", pl.String, "name", "The operator that allocated it.", True),
    Column("file", pl.String, "text", "The source file of its allocation.", True),
    Column("line", pl.Int32, "id", "The line of its allocation.", True),
    Column("function", pl.String, "name", "The function that line is in.", True),
    Column("how", pl.String, "name", "How it is known: stack, stamp (it ran) or definition.", True),
    Column("allocated", pl.Int64, "instant", "When it was allocated.", True),
    Column("released", pl.Int64, "instant", "When it was released.", True),
    Column("release_operator", pl.String, "name", "The operator that released it.", True),
    Column("release_file", pl.String, "text", "The source file of its release.", True),
    Column("release_line", pl.Int32, "id", "The line of its release.", True),
    Column("step", pl.Int64, "id", "The step of its allocation.", True),
    Column("device_type", pl.String, "name", "CPU, CUDA, HIP, XPU, MPS or another.", True),
    Column("device", pl.Int32, "id", "The device's number; -1 for the CPU.", True),
    Column("address", pl.UInt64, "id", "Where it lies.", True),
    needs=("memory",),
    sums=("size",),
)
def memory_events(trace: Trace, *, device: str = "", step: int = -1, top: Top = 0) -> pl.DataFrame:
    """Every block of memory with its allocation and its release, largest first.

    An allocation and the next record of its address are one block if that releases as many bytes.
    A block is `released`; or it `lives on` when the recording ends; or it was there `before the
    recording`, which saw its release only; or it is `unpaired`, because the trace has no address of
    it (before PyTorch 1.10) or lacks a record; or its allocation `failed` for want of memory. An
    operator that only allocates (`aten::empty`) stands behind the one that called it. `device`
    keeps one type, such as `cuda`; `step` the blocks allocated in that step, `top` the largest.
    """
    table = blocks_of(trace, device)
    if not table.height:
        return pl.DataFrame(schema={column.name: column.dtype for column in memory_events.columns})
    table = table.with_columns(step=step_numbers(trace, table["allocated"]))
    if step >= 0:
        table = table.filter(pl.col("step") == step)
    table = table.sort("size", "at", descending=[True, False])
    table = table.head(top) if top > 0 else table
    both = pl.concat([table["allocation"], table["release"]])
    sites, operators = record_sites(trace, both), operator_labels(trace, both)
    gained, lost = sites.head(table.height), sites.tail(table.height)
    return table.with_columns(
        gained,
        operator=operators.head(table.height),
        category=categories(trace, table),
        duration=pl.col("released") - pl.col("allocated"),
        release_operator=operators.tail(table.height),
        release_file=lost["file"],
        release_line=lost["line"],
    ).select(pl.col(column.name).cast(column.dtype) for column in memory_events.columns)
