"""Estimated achieved occupancy of kernels: as recorded, and where that cannot be, as computed.

The recorder estimates `min(blocks that fit on an SM, blocks of the grid for each SM) x threads of a
block / threads of an SM`, in whole percent (libkineto, `CuptiActivity`). Where a block needs more
shared memory than SMs have by default, it finds that none fits, and writes 0: for most GEMM and
attention kernels since Ampere. But a kernel that ran had a block on an SM.
"""

from typing import Final

import polars as pl

from selftime.trace import Trace

_MOST_THREADS: Final = 2_048
"""The most threads that an SM of any device can hold, where the device's are not told."""
_STEP: Final = 1
"""Percent are written whole."""
_REGISTERS: Final = 256
"""Registers of a warp are given out by so many."""
_SCHEDULERS: Final = 4
"""Warps share the registers of an SM by so many parts."""
_RESERVED: Final = 1_024
"""Bytes of shared memory that the system keeps of each block, since compute capability 8.0."""
_SHARED_UNIT: Final = 128
"""Bytes of shared memory are given out by so many."""
_MOST_BLOCKS: Final = {(7, 5): 16, (8, 6): 16, (8, 7): 16, (8, 9): 24}
"""The most blocks on an SM, by compute capability; elsewhere 32."""
_BLOCKS: Final = 32


def achieved_occupancy(trace: Trace) -> pl.DataFrame:
    """The kernels' estimated achieved occupancy, in percent; null where none can be told.

    Columns: id; occupancy. One row for each row of `device_args`.
    """
    most = pl.coalesce(_positive("threads_per_sm"), _MOST_THREADS)
    least = 100 * pl.min_horizontal(1.0, "blocks_per_sm") * pl.col("threads") / most
    impossible = (pl.col("occupancy") + _STEP <= least).fill_null(value=False)
    real = pl.when((pl.col("occupancy") >= 0) & ~impossible).then("occupancy")
    computed = pl.when(impossible).then(_computed())
    return _launched(trace).select("id", occupancy=pl.coalesce(real, computed))


def computed_occupancy(trace: Trace) -> pl.DataFrame:
    """The same by the rules of CUDA's occupancy calculator, from what the trace tells of launches.

    Columns: id; occupancy, null where registers, block, grid or the device are not known.
    """
    return _launched(trace).select("id", occupancy=_computed())


def _launched(trace: Trace) -> pl.DataFrame:
    """How each kernel was launched, with what its device can hold."""
    described = trace.devices.drop("index", "name").rename({"id": "properties"})
    told = trace.device_args.select(
        *("id", "properties", "occupancy", "blocks_per_sm", "block", "registers", "shared_memory")
    )
    sides = [pl.col("block").arr.get(axis).cast(pl.Float64) for axis in range(3)]
    return told.join(described, on="properties", how="left", maintain_order="left").with_columns(
        threads=sides[0] * sides[1] * sides[2]
    )


def _positive(name: str) -> pl.Expr:
    return pl.when(pl.col(name) > 0).then(pl.col(name).cast(pl.Float64))


def _computed() -> pl.Expr:
    """Blocks that fit by threads, registers and shared memory; times their threads, in percent."""
    warps = (_positive("threads") / _positive("warp_size")).ceil()
    by_threads = (_positive("threads_per_sm") / _positive("warp_size") / warps).floor()
    of_warp = _up(pl.col("registers") * pl.col("warp_size"), _REGISTERS)
    share = (_positive("registers_per_sm") / of_warp / _SCHEDULERS).floor() * _SCHEDULERS
    by_registers = (share / warps).floor()
    kept = pl.when(pl.col("compute_major") >= 8).then(_RESERVED).otherwise(0)
    of_block = _up(pl.col("shared_memory") + kept, _SHARED_UNIT)
    room = _positive("shared_memory_per_sm")
    by_shared = pl.when(of_block > 0).then((room / of_block).floor()).otherwise(room)
    most = pl.lit(_BLOCKS)
    for (major, minor), blocks in _MOST_BLOCKS.items():
        own = (pl.col("compute_major") == major) & (pl.col("compute_minor") == minor)
        most = pl.when(own).then(blocks).otherwise(most)
    known = pl.all_horizontal(
        by_threads.is_not_null(), by_registers.is_not_null(), by_shared.is_not_null()
    )
    fit = pl.min_horizontal(by_threads, by_registers, by_shared, most)
    occupied = 100 * pl.min_horizontal(fit, "blocks_per_sm") * pl.col("threads")
    told = known & (fit >= 1) & pl.col("blocks_per_sm").is_not_null()
    return pl.when(told).then(occupied / _positive("threads_per_sm"))


def _up(amount: pl.Expr, unit: int) -> pl.Expr:
    return (amount / unit).ceil() * unit
