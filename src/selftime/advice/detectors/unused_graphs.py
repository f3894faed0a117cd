"""Finds layers whose nodes for gradients no backward pass uses, within steps that have one."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import begins_within_enclosing
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.trace import Trace

_NO_NUMBER: Final = -1


def forward_operators_with_autograd_numbers(trace: Trace) -> pl.DataFrame:
    """Returns the forward operators to which autograd gave a sequence number."""
    numbered = trace.op_args.select("id", "sequence", "forward_thread", "forward").filter(
        pl.col("sequence").is_not_null()
        & (pl.col("forward_thread").fill_null(0) == 0)
        & pl.col("forward").is_null()
    )
    numbered = numbered.sort("id")
    operators = trace.slices[numbered["id"]].with_columns(numbered["sequence"])
    tracks = trace.tracks.filter(pl.col("kind") == "host")["id"]
    operators = operators.filter(pl.col("track").is_in(tracks.implode()))
    return filter_by_name(_without_traced_operators(trace, operators), names.is_dispatched_operator)


def _without_traced_operators(trace: Trace, operators: pl.DataFrame) -> pl.DataFrame:
    """Returns the operators without those that a compiler ran to trace a function.

    A compiler runs the function on tensors without data, and no backward pass uses the graph of it.
    """
    compiling = filter_by_name(trace.slices, names.is_compilation)
    compiling = compiling.with_columns(end=pl.col("start") + pl.col("duration").fill_null(0))
    is_traced = begins_within_enclosing(operators, compiling)
    return operators.filter(pl.Series(~is_traced, dtype=pl.Boolean))


def layers_without_backward(trace: Trace, numbered: pl.DataFrame) -> pl.DataFrame:
    """Returns the outermost layer operators that record an unused graph.

    `numbered` has the forward operators with autograd's number (`sequence`): that of the next node,
    which rises as one is made. A node is used if a backward operator belongs to an operator within
    the layer. Layers of a pass of which others are used are left out. Of the last layer of a
    thread, and in a recording that links no backward operator, nothing is known; the table is then
    without them.
    """
    backward = filter_by_name(trace.slices, names.is_backward_node)
    backward = backward.with_columns(end=pl.col("start") + pl.col("duration").fill_null(0))
    # What a backward node runs, such as recomputed layers, is used by the pass that it is part of.
    recomputed = begins_within_enclosing(numbered, backward)
    numbered = numbered.filter(pl.Series(~recomputed, dtype=pl.Boolean))
    linked = trace.op_args["forward"].drop_nulls().unique()
    layers = filter_by_name(numbered, names.is_layer_operator)
    layers = layers.filter(~pl.col("parent").is_in(layers["id"].implode()).fill_null(value=False))
    if not linked.len() or not layers.height:
        return layers.clear()
    used = trace.slices.select("id", "track", "start")[linked]
    layers = layers.sort("track", "start").with_columns(end=pl.col("start") + pl.col("duration"))
    is_used = _contains_any(layers, used)
    makes_node = _next_numbers(layers, numbered) > layers["sequence"].to_numpy()
    is_unused = makes_node & ~is_used & ~_is_within_used_pass(trace, layers, is_used, backward)
    return layers.filter(pl.Series(is_unused, dtype=pl.Boolean)).drop("end")


def _is_within_used_pass(
    trace: Trace, layers: pl.DataFrame, is_used: Any, backward: pl.DataFrame
) -> Any:
    """Returns for each layer whether a layer of the same pass is used.

    So is the output of a recurrent network at a time whose output no loss needs, while its state
    goes on to a loss. A pass is made of layers that follow each other where they are used, too, and
    without a backward node between them. Of a pass that is not used at all, such as a metric, no
    layer is. `layers` are in order on each thread.
    """
    sites = source_sites_of_slices(trace, layers["id"]).select(SOURCE_SITE_COLUMNS)
    sites = sites.with_columns(layers["name"].cast(pl.String))
    earlier = np.searchsorted(np.sort(backward["start"].to_numpy()), layers["start"].to_numpy())
    rows = pl.DataFrame({"track": layers["track"], "used": is_used, "earlier": earlier})
    rows = rows.with_columns(sites.select(pl.struct(pl.all()).rank("dense").alias("site")))
    last = pl.col("site", "used", "earlier").shift().over("track").name.prefix("last_")
    pairs = rows.with_columns(last)
    pair = ("last_site", "site")
    is_usual = pl.col("used").any().over(pair) & pl.col("last_used").any().over(pair)
    goes_on = is_usual & (pl.col("last_earlier") == pl.col("earlier"))
    number = (~goes_on.fill_null(value=False)).cum_sum().alias("number")
    return pairs.with_columns(number).select(pl.col("used").any().over("number"))["used"].to_numpy()


def _contains_any(layers: pl.DataFrame, slices: pl.DataFrame) -> Any:
    """Returns for each layer whether any of the slices begins within it, on its thread."""
    found = begins_within_enclosing(slices, layers)
    inner = slices.filter(pl.Series(found, dtype=pl.Boolean)).sort("start")
    joined = inner.join_asof(
        layers.select("id", "track", "start").sort("start"),
        on="start",
        by="track",
        strategy="backward",
        check_sortedness=False,
    )
    return layers["id"].is_in(joined["id_right"].implode()).to_numpy()


def _next_numbers(layers: pl.DataFrame, numbered: pl.DataFrame) -> Any:
    """Returns the number of the first operator after each layer on its thread; -1 for none."""
    after = (
        layers.select("id", "track", "end")
        .sort("end")
        .join_asof(
            numbered.select("track", "start", "sequence").sort("start"),
            left_on="end",
            right_on="start",
            by="track",
            strategy="forward",
            check_sortedness=False,
        )
    )
    known = layers.select("id").join(after, on="id", how="left", maintain_order="left")
    return known["sequence"].fill_null(_NO_NUMBER).to_numpy()
