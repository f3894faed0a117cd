"""Graphs that were captured once and replayed: which kernels belong to which.

New recordings number graphs. Where a recording does not, launches of graphs that ran the same
kernels in the same order are taken as replays of one graph.
"""

import polars as pl

from selftime import names
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace


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
