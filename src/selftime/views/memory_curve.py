"""Memory over time: allocated, reserved by the allocator, and reserved but unused."""

import math
from typing import Annotated, Final

import polars as pl

from selftime.analysis.memory.kept_records import (
    RECORDS_KEPT_PER_TIME_INTERVAL,
    downsample_memory_records,
    memory_records_in_time_range,
)
from selftime.analysis.memory.memory_records import memory_records_with_totals
from selftime.devices import HOST_DEVICE_TYPES
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import MEMORY_DEVICE_COLUMNS, NumberRange, view

_DEVICE_TYPE_AND_NUMBER_COLUMNS: Final = ("type", "device")
_MEMORY_TOTALS_COLUMNS: Final = ("device_type", "time", "allocated", "reserved", "how")


@view(
    *MEMORY_DEVICE_COLUMNS,
    Column("time", pl.Int64, "instant", "When the memory totals of this row became valid."),
    Column(
        "allocated", pl.Int64, "bytes", "Bytes allocated on the device, for tensors and otherwise."
    ),
    Column(
        "reserved",
        pl.Int64,
        "bytes",
        "Bytes that PyTorch's allocator took from the device; null if it takes none.",
        True,
    ),
    Column(
        "fragmentation",
        pl.Int64,
        "bytes",
        "Bytes that the allocator has reserved but not allocated; null if unknown.",
        True,
    ),
    Column("capacity", pl.Int64, "bytes", "The device's total memory; null if unknown.", True),
    Column(
        "how",
        pl.String,
        "name",
        "How memory totals are known: `recorded`, or `summed` from records, a lower bound.",
    ),
    Column("name", pl.String, "text", "The device's name; null if unknown.", True),
    needs=("memory",),
)
def memory_curve(
    trace: Trace,
    *,
    device: str = "",
    points: Annotated[
        int,
        NumberRange(
            RECORDS_KEPT_PER_TIME_INTERVAL,
            math.inf,
            f"{RECORDS_KEPT_PER_TIME_INTERVAL} or more, or 0 for all",
            accepts_zero=True,
        ),
    ] = 1000,
    start: int = 0,
    end: int = 0,
) -> pl.DataFrame:
    """Allocated and reserved memory of each device over time.

    `recorded` totals are the allocator's own and include memory from before the recording. Where a
    trace has none, as for the CPU and before PyTorch 1.10, records are `summed` from the lowest
    baseline with which no total falls below 0. `points` limits the rows of a device: of each
    interval of time the records with the lowest and highest allocated, the highest reserved and the
    last are kept, so that every peak stays; 0 keeps all. `device` keeps one type, such as `cuda`;
    `start` and `end`, in ns, what is between two instants, from the totals at the first.
    """
    every = memory_records_with_totals(trace, device)
    parts = every.partition_by(*_DEVICE_TYPE_AND_NUMBER_COLUMNS, maintain_order=True)
    kept = [
        downsample_memory_records(memory_records_in_time_range(part, start, end), points)
        for part in parts
    ]
    table = (pl.concat(kept, how="vertical_relaxed") if kept else every).select(
        *_DEVICE_TYPE_AND_NUMBER_COLUMNS, *_MEMORY_TOTALS_COLUMNS
    )
    return (
        table.join(
            _accelerator_descriptions(trace),
            on=["type", "device"],
            how="left",
            maintain_order="left",
        )
        .with_columns(fragmentation=pl.col("reserved") - pl.col("allocated"))
        .select(pl.col(column.name).cast(column.dtype) for column in memory_curve.columns)
    )


def _accelerator_descriptions(trace: Trace) -> pl.DataFrame:
    """Returns type, number, name and memory size (bytes) of each accelerator in the header."""
    kinds = (
        trace.memory.select(type="device_type")
        .unique()
        .filter(~pl.col("type").is_in(HOST_DEVICE_TYPES))
    )
    told = trace.devices.filter(pl.col("index").is_not_null()).unique("index", keep="first")
    return kinds.join(told.select(device="index", name="name", capacity="memory"), how="cross")
