"""How kernels were launched: grid, block, registers, shared memory, and what follows for an SM.

Blocks and warps for each SM are as recorded, else from grid, block and the device's description, as
the recorder computes them (libkineto, `CuptiActivity`): blocks / SMs, and that times the warps of a
block. AMD's recorder writes neither, but grid and block.
"""

import polars as pl

from selftime import names
from selftime.analysis.device.occupancy import achieved_occupancy
from selftime.analysis.slice_arguments import argument_rows
from selftime.analysis.slice_filters import filter_by_name
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


def with_graphs(trace: Trace, runs: pl.DataFrame) -> pl.DataFrame:
    """Runs of kernels with the graph that each belongs to.

    Needs columns id, name, launch, start and graph (the recorded number or null). Columns: graph,
    a name such as `graph 7`, null outside of graphs; replay, the launch of the graph.
    """
    calls = trace.slices.filter(pl.col("id").is_in(runs["launch"].unique().implode()))
    graphs = filter_by_name(calls, names.is_graph_launch)["id"]
    replayed = pl.col("launch").is_in(graphs.implode()).fill_null(value=False)
    inside = runs.filter(replayed).sort("start", "id")
    if not inside.height:
        numbered = pl.col("graph").is_not_null()
        label = pl.when(numbered).then(pl.format("graph {}", "graph"))
        replay = pl.when(numbered).then("launch")
        return runs.with_columns(graph=label.cast(pl.String), replay=replay.cast(pl.UInt32))
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
        runs.drop("graph")
        .join(
            launches.select("launch", "graph", replay="launch"),
            on="launch",
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("replay").cast(pl.UInt32))
    )


def with_meanings(work: pl.DataFrame) -> pl.DataFrame:
    """Device work with what its kernels' names tell.

    Columns: name as text; short, the function's name; class, one of `names.KERNEL_CLASSES`, that of
    communication being known by its arguments too; tensor_cores, null where the name is silent.
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
