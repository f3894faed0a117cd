"""Memory over time: what is allocated, what is reserved, and what lies between."""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.memory.allocations import totals
from selftime.devices import HOST_TYPES
from selftime.errors import UsageError
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view

_PLACE: Final = ("type", "device")
_TOLD: Final = ("device_type", "time", "allocated", "reserved", "how")
_KEPT: Final = 4
"""Records kept of a stretch: the lowest and highest allocated, the highest reserved, the last."""


@view(
    Column("device_type", pl.String, "name", "CPU, CUDA, HIP, XPU, MPS or another.", True),
    Column("device", pl.Int32, "id", "The device's number; -1 for the CPU.", True),
    Column("time", pl.Int64, "instant", "When these totals began to hold."),
    Column("allocated", pl.Int64, "bytes", "In use by tensors and others."),
    Column("reserved", pl.Int64, "bytes", "Taken from the device by PyTorch.", True),
    Column("fragmentation", pl.Int64, "bytes", "Reserved and not allocated.", True),
    Column("capacity", pl.Int64, "bytes", "The device's memory.", True),
    Column(
        "how", pl.String, "name", "How it is known: `recorded`, or `summed`, which is at least."
    ),
    Column("name", pl.String, "text", "The device's name.", True),
    needs=("memory",),
)
def memory_curve(trace: Trace, *, device: str = "", points: int = 1000) -> pl.DataFrame:
    """Allocated and reserved memory of each device over time.

    `recorded` totals are the allocator's own and hold what existed before the recording. Where a
    trace has none, as for the CPU and before PyTorch 1.10, records are `summed` from the least
    total with which none falls below 0. `points` bounds the rows of a device: of each stretch of
    time the records with the lowest and highest allocated, the highest reserved and the last are
    kept, so that every peak stands; 0 keeps all. `device` keeps one type, such as `cuda`.
    """
    if points < 0 or 0 < points < _KEPT:
        raise UsageError(f"`points` is `{points}`; write {_KEPT} or more, or 0 for all")
    every = totals(trace, device).select(*_PLACE, *_TOLD)
    parts = every.partition_by(*_PLACE, maintain_order=True)
    kept = [_thinned(part, points) for part in parts]
    table = pl.concat(kept) if kept else every
    return (
        table.join(_described(trace), on=["type", "device"], how="left", maintain_order="left")
        .with_columns(fragmentation=pl.col("reserved") - pl.col("allocated"))
        .select(pl.col(column.name).cast(column.dtype) for column in memory_curve.columns)
    )


def _described(trace: Trace) -> pl.DataFrame:
    """Name and memory of each accelerator, whose number is that of its description."""
    kinds = (
        trace.memory.select(type="device_type").unique().filter(~pl.col("type").is_in(HOST_TYPES))
    )
    told = trace.devices.filter(pl.col("index").is_not_null()).unique("index", keep="first")
    return kinds.join(told.select(device="index", name="name", capacity="memory"), how="cross")


def _thinned(part: pl.DataFrame, points: int) -> pl.DataFrame:
    """The records of one device, at most so many, with every peak among them."""
    if not points or part.height <= points:
        return part
    time = part["time"].to_numpy()
    stretches = max(points // _KEPT, 1)
    span = max(int(time[-1]) - int(time[0]), 1)
    # Divided first in floats: the product of a long span and many stretches leaves 64 bits.
    stretch = np.minimum(((time - time[0]) / span * stretches).astype(np.int64), stretches - 1)
    chosen = (
        part.with_row_index("place")
        .group_by(stretch=pl.Series(stretch))
        .agg(
            lowest=pl.col("place").sort_by("allocated", maintain_order=True).first(),
            highest=pl.col("place").sort_by("allocated", descending=True).first(),
            reserved=pl.col("place").sort_by("reserved", descending=True, nulls_last=True).first(),
            last=pl.col("place").last(),
        )
    )
    places = pl.concat([chosen[name] for name in ("lowest", "highest", "reserved", "last")])
    return part[places.unique().sort()]
