"""Launch attributes of kernels (grid, block, registers, shared memory), and their occupancy.

Blocks and warps per SM are as recorded. Where they are not recorded, they are computed from grid,
block and the device's description as the recorder does (libkineto, `CuptiActivity`): blocks / SMs,
and that times the warps of a block. AMD's recorder writes grid and block, but neither of these.

The recorder estimates the achieved occupancy as `min(blocks that fit on an SM, blocks of the grid
per SM) x threads of a block / threads of an SM`, in whole percent. Where a block needs more shared
memory than an SM offers by default, the recorder concludes that no block fits, and writes 0. That
concerns most GEMM and attention kernels since Ampere. Such a value is impossible, because a kernel
that ran had a block on an SM, so it is replaced by a computed estimate.
"""

from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.slice_arguments import argument_row_numbers
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

_MAX_THREADS_PER_SM: Final = 2_048
"""The most threads that an SM of any device can hold, for devices whose value is unknown."""
_RECORDED_OCCUPANCY_RESOLUTION_PERCENT: Final = 1
"""The recorder rounds occupancies to multiples of this many percent."""
_REGISTERS_PER_ALLOCATION_UNIT: Final = 256
"""The hardware allocates registers to a warp in multiples of this number."""
_SCHEDULERS_PER_SM: Final = 4
"""Number of partitions (warp schedulers) of an SM, each with its part of the registers."""
_RESERVED_SHARED_MEMORY_BYTES_PER_BLOCK: Final = 1_024
"""Bytes of shared memory that the system reserves per block, since compute capability 8.0."""
_SHARED_MEMORY_ALLOCATION_UNIT_BYTES: Final = 128
"""The hardware allocates shared memory to a block in multiples of this many bytes."""
_MAX_BLOCKS_PER_SM_BY_COMPUTE_CAPABILITY: Final = {(7, 5): 16, (8, 6): 16, (8, 7): 16, (8, 9): 24}
"""The most blocks that an SM can hold, by compute capability; `_DEFAULT_MAX_BLOCKS_PER_SM` for
others.
"""
_DEFAULT_MAX_BLOCKS_PER_SM: Final = 32


def achieved_occupancy_percent(trace: Trace) -> pl.DataFrame:
    """Returns each kernel's estimated achieved occupancy in percent; null where unknown.

    Columns: id; occupancy. One row for each row of `device_args`.
    """
    most = pl.coalesce(_positive_or_null("threads_per_sm"), _MAX_THREADS_PER_SM)
    least = 100 * pl.min_horizontal(1.0, "blocks_per_sm") * pl.col("threads") / most
    impossible = (pl.col("occupancy") + _RECORDED_OCCUPANCY_RESOLUTION_PERCENT <= least).fill_null(
        value=False
    )
    real = pl.when((pl.col("occupancy") >= 0) & ~impossible).then("occupancy")
    computed = pl.when(impossible).then(_computed_occupancy_percent())
    return _launch_configurations_of_kernels(trace).select(
        "id", occupancy=pl.coalesce(real, computed)
    )


def computed_occupancy_of_kernels(trace: Trace) -> pl.DataFrame:
    """Returns each kernel's theoretical occupancy (%), by the rules of CUDA's occupancy calculator.

    Columns: id; occupancy, null where registers, block, grid or the device are unknown.
    """
    return _launch_configurations_of_kernels(trace).select(
        "id", occupancy=_computed_occupancy_percent()
    )


def _launch_configurations_of_kernels(trace: Trace) -> pl.DataFrame:
    """Returns each kernel's block, registers, shared memory, and its device's limits."""
    described = trace.devices.drop("index", "name").rename({"id": "properties"})
    told = trace.device_args.select(
        *("id", "properties", "occupancy", "blocks_per_sm", "block", "registers", "shared_memory")
    )
    sides = [pl.col("block").arr.get(axis).cast(pl.Float64) for axis in range(3)]
    return told.join(described, on="properties", how="left", maintain_order="left").with_columns(
        threads=sides[0] * sides[1] * sides[2]
    )


def _positive_or_null(column: str) -> pl.Expr:
    return pl.when(pl.col(column) > 0).then(pl.col(column).cast(pl.Float64))


def _computed_occupancy_percent() -> pl.Expr:
    """Returns a column expression: occupancy (%), limited by threads, registers, shared memory."""
    warps = (_positive_or_null("threads") / _positive_or_null("warp_size")).ceil()
    by_threads = (
        _positive_or_null("threads_per_sm") / _positive_or_null("warp_size") / warps
    ).floor()
    of_warp = _rounded_up_to_unit(
        pl.col("registers") * pl.col("warp_size"), _REGISTERS_PER_ALLOCATION_UNIT
    )
    share = (
        _positive_or_null("registers_per_sm") / of_warp / _SCHEDULERS_PER_SM
    ).floor() * _SCHEDULERS_PER_SM
    by_registers = (share / warps).floor()
    kept = (
        pl.when(pl.col("compute_major") >= 8)
        .then(_RESERVED_SHARED_MEMORY_BYTES_PER_BLOCK)
        .otherwise(0)
    )
    of_block = _rounded_up_to_unit(
        pl.col("shared_memory") + kept, _SHARED_MEMORY_ALLOCATION_UNIT_BYTES
    )
    room = _positive_or_null("shared_memory_per_sm")
    by_shared = pl.when(of_block > 0).then((room / of_block).floor()).otherwise(room)
    most = pl.lit(_DEFAULT_MAX_BLOCKS_PER_SM)
    for (major, minor), blocks in _MAX_BLOCKS_PER_SM_BY_COMPUTE_CAPABILITY.items():
        own = (pl.col("compute_major") == major) & (pl.col("compute_minor") == minor)
        most = pl.when(own).then(blocks).otherwise(most)
    known = pl.all_horizontal(
        by_threads.is_not_null(), by_registers.is_not_null(), by_shared.is_not_null()
    )
    fit = pl.min_horizontal(by_threads, by_registers, by_shared, most)
    occupied = 100 * pl.min_horizontal(fit, "blocks_per_sm") * pl.col("threads")
    told = known & (fit >= 1) & pl.col("blocks_per_sm").is_not_null()
    return pl.when(told).then(occupied / _positive_or_null("threads_per_sm"))


def _rounded_up_to_unit(amount: pl.Expr, unit: int) -> pl.Expr:
    return (amount / unit).ceil() * unit


_LAUNCH_CONFIGURATION_COLUMNS = (
    "grid",
    "block",
    "registers",
    "shared_memory",
    "blocks_per_sm",
    "warps_per_sm",
    "properties",
    "graph",
)


def with_cuda_graph_names(trace: Trace, kernel_runs: pl.DataFrame) -> pl.DataFrame:
    """Adds to each kernel its CUDA graph's name and the id of the call that launched the graph.

    Needs columns id, name, launch, start and graph (the recorded number or null). Columns: graph, a
    name such as `graph 7`, null outside graphs; replay, the launch of the graph.
    """
    calls = trace.slices.filter(pl.col("id").is_in(kernel_runs["launch"].unique().implode()))
    graphs = filter_by_name(calls, names.is_graph_launch)["id"]
    replayed = pl.col("launch").is_in(graphs.implode()).fill_null(value=False)
    inside = kernel_runs.filter(replayed).sort("start", "id")
    if not inside.height:
        numbered = pl.col("graph").is_not_null()
        label = pl.when(numbered).then(pl.format("graph {}", "graph"))
        replay = pl.when(numbered).then("launch")
        return kernel_runs.with_columns(graph=label.cast(pl.String), replay=replay.cast(pl.UInt32))
    launches = inside.group_by("launch", maintain_order=True).agg(
        known=pl.col("graph").first(), kernels=pl.col("name").str.join("\n")
    )
    alike = pl.col("launch").first().over("kernels").alias("alike")
    launches = launches.with_columns(alike).with_columns(
        graph=pl.when(pl.col("known").is_not_null())
        .then(pl.format("graph {}", "known"))
        .otherwise(pl.format("graph of launch {}", "alike"))
    )
    return (
        kernel_runs.drop("graph")
        .join(
            launches.select("launch", "graph", replay="launch"),
            on="launch",
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("replay").cast(pl.UInt32))
    )


def with_kernel_classes(work: pl.DataFrame) -> pl.DataFrame:
    """Adds columns parsed from kernel names: short name, class, use of tensor cores.

    Columns: name as text; short, the function's name; class, one of `names.KERNEL_CLASSES`, where
    communication is also known from arguments; tensor_cores, null where the name does not say.
    """
    unique = work["name"].unique()
    texts = unique.cast(pl.String).to_list()
    told = pl.DataFrame(
        {
            "name": unique,
            "short": pl.Series([names.short_kernel_name(text) for text in texts], dtype=pl.String),
            "class": pl.Series([names.kernel_class(text) for text in texts], dtype=pl.String),
            "tensor_cores": pl.Series(
                [names.uses_tensor_cores(text) for text in texts], dtype=pl.Boolean
            ),
        }
    )
    collective = pl.when(pl.col("kind") == "communication").then(pl.lit("collective"))
    return work.join(told, on="name", how="left", maintain_order="left").with_columns(
        pl.col("name").cast(pl.String), collective.otherwise("class").alias("class")
    )


def with_launch_configurations(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """Returns device work with its launch configuration and occupancy; unknown values are null.

    Columns: grid and block as text (x,y,z); registers; shared_memory, bytes; blocks_per_sm,
    warps_per_sm; occupancy, see `achieved_occupancy_percent`; graph, the number of its graph.
    """
    described = trace.devices.select(properties="id", sms="multiprocessors", warp="warp_size")
    args = trace.device_args.select(_LAUNCH_CONFIGURATION_COLUMNS).with_columns(
        achieved_occupancy_percent(trace)["occupancy"]
    )
    rows = argument_row_numbers(trace, "device_args", work["id"])
    told = work.hstack(args.select(pl.all().gather(rows)))
    told = told.join(described, on="properties", how="left", maintain_order="left")
    sms = pl.when(pl.col("sms") > 0).then("sms")
    warp = pl.when(pl.col("warp") > 0).then("warp")
    blocks = _product_of_xyz("grid") / sms
    warps = blocks * (_product_of_xyz("block") / warp).ceil()
    return told.with_columns(
        blocks_per_sm=pl.coalesce("blocks_per_sm", blocks),
        warps_per_sm=pl.coalesce("warps_per_sm", warps),
        grid=_xyz_text("grid"),
        block=_xyz_text("block"),
    ).drop("properties", "sms", "warp")


def _product_of_xyz(column: str) -> pl.Expr:
    sizes = [pl.col(column).arr.get(axis).cast(pl.Float64) for axis in range(3)]
    return sizes[0] * sizes[1] * sizes[2]


def _xyz_text(column: str) -> pl.Expr:
    return pl.concat_str(
        [pl.col(column).arr.get(axis).cast(pl.String) for axis in range(3)], separator=","
    )
