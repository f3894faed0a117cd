"""How well each device is used in given steps.

All times are of those steps alone, each from its begin until its device work was done: what ran
between them counts nowhere. Kernels that ran at once are busy once.
"""

from typing import Any

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.occupancy import achieved_occupancy
from selftime.analysis.device.work import device_work
from selftime.analysis.grouping import grouped
from selftime.analysis.slice_arguments import argument_rows
from selftime.intervals import Intervals, before, length, union
from selftime.trace import Trace

_KERNELS = ("kernel", "communication")
_SCHEMA = {
    "device": pl.Int32,
    "properties": pl.UInt32,
    "kernels": pl.Int64,
    "window": pl.Int64,
    "busy": pl.Int64,
    "kernel_busy": pl.Int64,
    "compute_busy": pl.Int64,
    "sm_time": pl.Float64,
    "kernel_time": pl.Int64,
    "sized_time": pl.Int64,
    "occupied_time": pl.Float64,
    "occupancy_time": pl.Int64,
    "occupancy_kernels": pl.Int64,
    "compute_time": pl.Int64,
    "tensor_time": pl.Int64,
    "plain_time": pl.Int64,
}


def utilisation(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """One row for each device that did work, in order of number; times in ns.

    The steps are told by columns begin and done, in ns, in order and apart.

    Columns: device and properties (the row of `devices`), null where the trace does not tell;
    kernels, how many ran; window, the time of the steps. Unions: busy (any work),
    kernel_busy, compute_busy (kernels but collectives); sm_time, the integral of the share of
    multiprocessors that have a block, `min(1, sum of blocks per multiprocessor)`, over kernels
    whose grid is known. Sums over kernels: kernel_time, sized_time (of those whose grid is known),
    occupied_time (times estimated achieved occupancy, of those that have one), occupancy_time and
    occupancy_kernels (time and count of those). Sums over computing kernels: compute_time,
    tensor_time and plain_time (surely with and surely without tensor cores).

    The formulas are those of PyTorch's TensorBoard plugin; a copy of work on a device of which
    nothing is told counts to a device without a number.
    """
    windows = union(steps["begin"].to_numpy(), steps["done"].to_numpy())
    work = _within(_described(trace), windows)
    groups = work.group_by("device", maintain_order=True)
    rows = [
        {"device": device, "window": length(windows), **_of_device(own)}
        for (device,), own in groups
    ]
    return pl.DataFrame(rows, schema=_SCHEMA).sort("device", nulls_last=True)


def _described(trace: Trace) -> pl.DataFrame:
    """Work of devices with its launch configuration and whether it uses tensor cores."""
    described = trace.devices.select(properties="id", multiprocessors="multiprocessors")
    args = trace.device_args.select(
        "id",
        "properties",
        "blocks_per_sm",
        blocks=_product(trace.device_args["grid"]),
    ).join(described, on="properties", how="left", maintain_order="left")
    many = pl.when(pl.col("multiprocessors") > 0).then("multiprocessors")
    args = args.select(
        "properties",
        per_sm=pl.coalesce("blocks_per_sm", pl.col("blocks") / many),
        occupancy=achieved_occupancy(trace)["occupancy"],
    )
    work = device_work(trace).select("id", "name", "kind", "device", "start", "end")
    rows = argument_rows(trace, "device_args", work["id"])
    told = args.select(pl.all().gather(rows))
    return work.hstack(told).with_columns(tensor=_tensor(work["name"]))


def _product(sizes: pl.Series) -> pl.Series:
    """Blocks of each grid; null where it is not known."""
    known = sizes.is_not_null()
    blocks = np.prod(sizes.drop_nulls().to_numpy().astype(np.int64), axis=1)
    every = pl.Series([None], dtype=pl.Int64).new_from_index(0, sizes.len())
    return every.scatter(known.arg_true(), pl.Series(blocks, dtype=pl.Int64))


def _tensor(kernels: pl.Series) -> pl.Series:
    """Whether each uses tensor cores, as far as its name tells."""
    group, first = grouped(kernels.to_frame())
    texts = kernels.gather(pl.Series(first)).cast(pl.String).to_list()
    told = pl.Series([names.uses_tensor_cores(name) for name in texts], dtype=pl.Boolean)
    return told.gather(pl.Series(group))


def _within(work: pl.DataFrame, windows: Intervals) -> pl.DataFrame:
    """The work with begin and end in time of the windows, as if nothing lay between them."""
    begin = before(windows, work["start"].to_numpy())
    end = before(windows, work["end"].to_numpy())
    return work.with_columns(begin=begin, until=end, time=end - begin)


def _of_device(work: pl.DataFrame) -> dict[str, Any]:
    kernels = work.filter(pl.col("kind").is_in(_KERNELS))
    sized = kernels.filter(pl.col("per_sm").is_not_null())
    occupied = kernels.filter(pl.col("occupancy").is_not_null())
    computing = work.filter(pl.col("kind") == "kernel")
    ran = occupied.filter(pl.col("time") > 0)
    return {
        "properties": work["properties"].drop_nulls().first(),
        "kernels": kernels.filter(pl.col("time") > 0).height,
        "busy": _covered(work),
        "kernel_busy": _covered(kernels),
        "compute_busy": _covered(computing),
        "sm_time": _filled(sized) if sized.height else None,
        "kernel_time": kernels["time"].sum(),
        "sized_time": sized["time"].sum(),
        "occupied_time": (occupied["time"] * occupied["occupancy"] / 100).sum()
        if ran.height
        else None,
        "occupancy_time": occupied["time"].sum(),
        "occupancy_kernels": ran.height,
        "compute_time": computing["time"].sum(),
        "tensor_time": computing.filter(pl.col("tensor"))["time"].sum(),
        "plain_time": computing.filter(~pl.col("tensor"))["time"].sum(),
    }


def _covered(work: pl.DataFrame) -> int:
    return length(union(work["begin"].to_numpy(), work["until"].to_numpy()))


def _filled(kernels: pl.DataFrame) -> float:
    """The integral of `min(1, sum of blocks per multiprocessor of the kernels that run)`."""
    blocks = kernels["per_sm"].clip(0).to_numpy()
    times = np.concatenate([kernels["begin"].to_numpy(), kernels["until"].to_numpy()])
    order = np.argsort(times, kind="stable")
    level = np.cumsum(np.concatenate([blocks, -blocks])[order])[:-1]
    return float((np.clip(level, 0, 1) * np.diff(times[order])).sum())
