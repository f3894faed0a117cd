"""The forward pass records an autograd graph that no backward pass uses.

## What it means
Steps run the network forward only, as evaluation and inference do, but with gradients enabled:
autograd numbers every operator, makes a node for it and keeps what the backward pass would need.

In the trace: autograd's sequence number rises from operator to operator in two steps in a row or
more, without a backward node, in a program that runs layers.

## Why it costs
The activations of all layers stay until the output is dropped, instead of one after the other. That
memory limits the batch. The nodes cost a little time on the host: measured 0 to 15 % of the
dispatch. A trace does not show how much, so no saving is estimated.

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
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.trace import Trace

MIN_CONSECUTIVE_FORWARD_ONLY_STEPS: Final = 2
"""Smallest number of successive steps without backward pass to report; a single one may be cut
off."""

INFERENCE_MODE_FIX_CODE: Final = """with torch.inference_mode():
    for batch in loader:
        output = model(batch)"""
"""Example code of the fix: evaluation that records no graph."""


@rule(covers=("F3",), needs=("operators", "steps"), min_steps=MIN_CONSECUTIVE_FORWARD_ONLY_STEPS)
def check(trace: Trace) -> Iterator[Outcome]:
    steps = _steps_with_autograd_node_counts(trace)
    forward_only = steps.filter("alone")
    if forward_only.height < MIN_CONSECUTIVE_FORWARD_ONLY_STEPS:
        yield Checked(
            "every graph that autograd records is used by a backward pass", is_absent=True
        )
        return
    layers = _layer_operators_recorded_by_autograd(trace, forward_only)
    if not layers.height:
        yield Checked("the operators recorded for gradients are no layers of a network")
        return
    yield _finding(trace, forward_only, layers)


def _steps_with_autograd_node_counts(trace: Trace) -> pl.DataFrame:
    """Returns each step's number of autograd nodes, and whether no backward pass uses them.

    Columns: `nodes`, how many autograd recorded; `alone`, whether no backward pass uses them.

    The sequence number of an operator is that of the next node; it rises only if one is made.
    """
    steps = steps_with_counted_flags(trace).select("start", "end")
    numbered = _forward_operators_with_autograd_numbers(trace)
    at = _indices_of_steps_at_times(steps, numbered["start"])
    nodes = (
        numbered.with_columns(step=at)
        .filter(pl.col("step").is_not_null())
        .group_by("step")
        .agg(nodes=pl.col("sequence").n_unique() - 1)
    )
    used = (
        _indices_of_steps_at_times(
            steps, _backward_nodes_and_their_forward_operators(trace)["start"]
        )
        .drop_nulls()
        .unique()
    )
    table = steps.with_row_index("step").with_columns(pl.col("step").cast(pl.Int64))
    table = table.join(nodes, on="step", how="left", maintain_order="left")
    graph = (pl.col("nodes") > 0).fill_null(value=False)
    alone = graph & ~pl.col("step").is_in(used.implode())
    run = alone.rle_id()
    return table.with_columns(
        alone=alone & (pl.len().over(run) >= MIN_CONSECUTIVE_FORWARD_ONLY_STEPS)
    )


def _forward_operators_with_autograd_numbers(trace: Trace) -> pl.DataFrame:
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
    return filter_by_name(operators, names.is_dispatched_operator)


def _backward_nodes_and_their_forward_operators(trace: Trace) -> pl.DataFrame:
    """Returns the backward nodes, and the forward operators that they compute gradients of."""
    nodes = filter_by_name(trace.slices, names.is_backward_node)
    forward = trace.op_args["forward"].drop_nulls().unique()
    linked = trace.slices.filter(pl.col("id").is_in(forward.implode()))
    return pl.concat([nodes, linked])


def _indices_of_steps_at_times(steps: pl.DataFrame, times_ns: pl.Series) -> pl.Series:
    """Returns for each time the index of the step that contains it; null if none does."""
    begin, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    when = times_ns.to_numpy()
    at = np.searchsorted(begin, when, side="right") - 1
    inside = (at >= 0) & (when < end[at]) if end.size else np.zeros(when.size, bool)
    return pl.Series(at.astype(np.int64)).set(pl.Series(~inside), None)


def _layer_operators_recorded_by_autograd(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """Returns the layer operators in the steps to which autograd gave a sequence number."""
    layers = filter_by_name(
        _forward_operators_with_autograd_numbers(trace), names.is_layer_operator
    ).sort("start", "id")
    return layers.filter(
        _indices_of_steps_at_times(steps.select("start", "end"), layers["start"]).is_not_null()
    )


def _finding(
    trace: Trace, forward_only_steps: pl.DataFrame, layer_operators: pl.DataFrame
) -> Finding:
    step_count = forward_only_steps.height
    nodes = sum(forward_only_steps["nodes"].to_list()) / step_count
    first = next(
        slices_by_line(trace, layer_operators.head(1)),
        LineSlices.as_one_group(layer_operators.head(1)),
    )
    return Finding(
        title=f"{step_count} steps run forward only and record a graph for gradients",
        where=first.where,
        count_per_step=nodes,
        confidence="medium",
        evidence=(
            Evidence("steps without a backward pass", step_count, "count"),
            Evidence(
                "autograd nodes recorded in a step without a backward pass",
                nodes,
                "count",
                first.events(),
            ),
        ),
        fix=Fix(
            "Run evaluation without a graph; the named line is the first that records one.",
            INFERENCE_MODE_FIX_CODE,
        ),
    )
