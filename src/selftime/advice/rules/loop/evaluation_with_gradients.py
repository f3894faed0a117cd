"""The forward pass records a graph for gradients that nobody computes.

## What it means
Steps run the network forward only, as evaluation and inference do, but with gradients enabled:
autograd numbers every operator, makes a node for it and keeps what the backward pass would need.

## Why it costs
The activations of all layers stay until the output is dropped, instead of one after the other. That
memory limits the batch. The nodes cost a little time on the host: measured 0 to 15 % of the
dispatch. A trace does not tell how much, so no number is given.

## What to do
Run evaluation under `torch.inference_mode()`, or `torch.no_grad()` where the results are used with
autograd later.

## Fires on
Steps whose operators autograd numbers, and no backward pass.

    column = 10 us
    mark 1 | sssssssssssstttttttttttt
    cpu 1  | aaaaabbbbccccddddeeeffff
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear; sequence = 1; line = net.py:5 forward
    b = aten::relu; sequence = 2; line = net.py:6 forward
    c = aten::linear; sequence = 3; line = net.py:7 forward
    d = aten::linear; sequence = 4; line = net.py:5 forward
    e = aten::relu; sequence = 5; line = net.py:6 forward
    f = aten::linear; sequence = 6; line = net.py:7 forward

## Silent on
Training: a backward pass uses the graph.

    column = 10 us
    mark 1 | sssssssssssstttttttttttt
    cpu 1  | aaaaabbbbcccddddeeeefff
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear; sequence = 1
    b = aten::relu; sequence = 2
    c = autograd::engine::evaluate_function: ReluBackward0; sequence = 2; forward_thread = 1
    d = aten::linear; sequence = 3
    e = aten::relu; sequence = 4
    f = autograd::engine::evaluate_function: ReluBackward0; sequence = 4; forward_thread = 1

Gradients enabled, but no tensor that needs one: the number does not go on.

    column = 10 us
    mark 1 | sssssssssssstttttttttttt
    cpu 1  | aaaaabbbbcccaaaabbbbcccc
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear; sequence = 7
    b = aten::relu; sequence = 7
    c = aten::linear; sequence = 7

No gradients: autograd numbers nothing.

    column = 10 us
    mark 1 | sssssssssssstttttttttttt
    cpu 1  | aaaaabbbbcccaaaabbbbcccc
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear
    b = aten::relu
    c = aten::linear
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule
from selftime.advice.detectors.places import Place, places
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.trace import Trace

LEAST_STEPS: Final = 2
"""A single step without a backward pass may be the first half of one that was cut."""

CODE: Final = """with torch.inference_mode():
    for batch in loader:
        output = model(batch)"""
"""Evaluation without a graph."""


@rule(covers=("F3",), needs=("operators", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    steps = _steps(trace)
    alone = steps.filter("alone")
    if alone.height < LEAST_STEPS:
        yield Checked(
            "every graph that autograd records is used by a backward pass", is_absent=True
        )
        return
    network = _of_networks(trace, alone)
    if not network.height:
        yield Checked("what is recorded for gradients is no network's")
        return
    yield _finding(trace, alone, network)


def _steps(trace: Trace) -> pl.DataFrame:
    """The steps with `nodes`, that autograd recorded in each, and `alone`, if none is used.

    The number that an operator bears is that of the next node. It goes on only if there is one.
    """
    steps = assessed_steps(trace).select("start", "end")
    numbered = _numbered(trace)
    at = _step_of(steps, numbered["start"])
    nodes = (
        numbered.with_columns(step=at)
        .filter(pl.col("step").is_not_null())
        .group_by("step")
        .agg(nodes=pl.col("sequence").n_unique() - 1)
    )
    used = _step_of(steps, _used(trace)["start"]).drop_nulls().unique()
    told = steps.with_row_index("step").with_columns(pl.col("step").cast(pl.Int64))
    told = told.join(nodes, on="step", how="left", maintain_order="left")
    graph = (pl.col("nodes") > 0).fill_null(value=False)
    alone = graph & ~pl.col("step").is_in(used.implode())
    run = alone.rle_id()
    return told.with_columns(alone=alone & (pl.len().over(run) >= LEAST_STEPS))


def _numbered(trace: Trace) -> pl.DataFrame:
    """Operators of the forward pass that bear autograd's number."""
    told = trace.op_args.select("id", "sequence", "forward_thread", "forward").filter(
        pl.col("sequence").is_not_null()
        & (pl.col("forward_thread").fill_null(0) == 0)
        & pl.col("forward").is_null()
    )
    told = told.sort("id")
    operators = trace.slices[told["id"]].with_columns(told["sequence"])
    tracks = trace.tracks.filter(pl.col("kind") == "host")["id"]
    operators = operators.filter(pl.col("track").is_in(tracks.implode()))
    return filter_by_name(operators, names.is_dispatched)


def _used(trace: Trace) -> pl.DataFrame:
    """Nodes of the backward pass, and the forward operators that they belong to."""
    nodes = filter_by_name(trace.slices, names.is_backward_node)
    forward = trace.op_args["forward"].drop_nulls().unique()
    linked = trace.slices.filter(pl.col("id").is_in(forward.implode()))
    return pl.concat([nodes, linked])


def _step_of(steps: pl.DataFrame, instants: pl.Series) -> pl.Series:
    """The step that each instant lies in, or null."""
    begin, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    when = instants.to_numpy()
    at = np.searchsorted(begin, when, side="right") - 1
    inside = (at >= 0) & (when < end[at]) if end.size else np.zeros(when.size, bool)
    return pl.Series(at.astype(np.int64)).set(pl.Series(~inside), None)


def _of_networks(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """The numbered operators of these steps that are at home in networks."""
    layers = filter_by_name(_numbered(trace), names.is_layer_operator).sort("start", "id")
    return layers.filter(_step_of(steps.select("start", "end"), layers["start"]).is_not_null())


def _finding(trace: Trace, steps: pl.DataFrame, network: pl.DataFrame) -> Finding:
    nodes = sum(steps["nodes"].to_list()) / steps.height
    first = next(places(trace, network.head(1)), Place.of(network.head(1)))
    return Finding(
        title=f"{steps.height} steps run forward only and record a graph for gradients",
        where=first.where,
        count_per_step=nodes,
        saving=Saving(),
        confidence="medium",
        evidence=(
            Evidence("steps without a backward pass", steps.height, "count"),
            Evidence("nodes that autograd recorded in such a step", nodes, "count", first.events()),
        ),
        fix=Fix(
            "Run evaluation without a graph; the named line is the first that records one.", CODE
        ),
    )
