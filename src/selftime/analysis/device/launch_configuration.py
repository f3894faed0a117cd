"""How kernels were launched: grid, block, registers, shared memory, and what follows for an SM.

Blocks and warps for each SM are as recorded, else from grid, block and the device's description, as
the recorder computes them (libkineto, `CuptiActivity`): blocks / SMs, and that times the warps of a
block. AMD's recorder writes neither, but grid and block.
"""

import polars as pl

from selftime.analysis.device.occupancy import achieved_occupancy
from selftime.analysis.slice_arguments import argument_rows
from selftime.trace import Trace

_TOLD = (
    "grid",
    "block",
    "registers",
    "shared_memory",
    "blocks_per_sm",
    "warps_per_sm",
    "properties",
    "graph",
)


def with_grids(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """Device work with how it was launched; what is not known is null.

    Columns: grid and block as text (x,y,z); registers; shared_memory, bytes; blocks_per_sm,
    warps_per_sm; occupancy, see `achieved_occupancy`; graph, the number of its graph.
    """
    described = trace.devices.select(properties="id", sms="multiprocessors", warp="warp_size")
    args = trace.device_args.select(_TOLD).with_columns(achieved_occupancy(trace)["occupancy"])
    rows = argument_rows(trace, "device_args", work["id"])
    told = work.hstack(args.select(pl.all().gather(rows)))
    told = told.join(described, on="properties", how="left", maintain_order="left")
    sms = pl.when(pl.col("sms") > 0).then("sms")
    warp = pl.when(pl.col("warp") > 0).then("warp")
    blocks = _product("grid") / sms
    warps = blocks * (_product("block") / warp).ceil()
    return told.with_columns(
        blocks_per_sm=pl.coalesce("blocks_per_sm", blocks),
        warps_per_sm=pl.coalesce("warps_per_sm", warps),
        grid=_text("grid"),
        block=_text("block"),
    ).drop("properties", "sms", "warp")


def _product(name: str) -> pl.Expr:
    sizes = [pl.col(name).arr.get(axis).cast(pl.Float64) for axis in range(3)]
    return sizes[0] * sizes[1] * sizes[2]


def _text(name: str) -> pl.Expr:
    return pl.concat_str(
        [pl.col(name).arr.get(axis).cast(pl.String) for axis in range(3)], separator=","
    )
