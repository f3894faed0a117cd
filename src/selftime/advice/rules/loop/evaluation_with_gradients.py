"""The forward pass records an autograd graph that no backward pass uses.

## What it means
Steps run the network forward only, as evaluation and inference do, but with gradients enabled:
autograd numbers every operator, makes a node for it and keeps what the backward pass would need.

In the trace: autograd's sequence number rises from operator to operator in two steps in a row or
more, without a backward node, in a program that runs layers; or in two steps with a backward pass
there are layers that it does not reach. In the ledger of the run: an evaluation, from
`model.eval()` to `model.train()`, in which the number rises and no backward pass runs.

A layer whose result no loss needs is left out where it belongs to a pass that a loss needs: the
output of a recurrent network at a time of which only the state goes on. So is an evaluation in
every step whose graph is used in the recorded ones.

## Why it costs
The activations of all layers stay until the output is dropped, instead of one after the other. That
memory limits the batch. The nodes cost a little time on the host: measured 0 to 15 % of the
dispatch. A trace does not show how much, so no saving is estimated.

## What to do
Run evaluation under `torch.inference_mode()`, or `torch.no_grad()` where the results are used with
autograd later. Between the two there is little: on one core with PyTorch 2.13 `inference_mode` took
0.5 to 2.5 % less time than `no_grad` in five of six networks.

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

A layer in each step that the step's backward pass does not reach.

    column = 10 us
    mark 1 | sssssssssssssttttttttttttuuuuu
    cpu 1  | aaabbbbccccdeeefffgggghhhiiiii
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::linear; sequence = 1; line = net.py:5 forward
    b = MmBackward0; sequence = 1; forward = a
    c = aten::linear; sequence = 2; line = train.py:9 validate
    d = aten::argmax; sequence = 3
    e = aten::linear; sequence = 3; line = net.py:5 forward
    f = MmBackward0; sequence = 3; forward = e
    g = aten::linear; sequence = 4; line = train.py:9 validate
    h = aten::argmax; sequence = 5
    i = aten::add; sequence = 5

Evaluations that no recorded step holds.

    column = 10 us
    run | before 1 s
    run | 50 training 100 ms
    run | training 600 ms: evaluation 500 ms, program 500 ms at train.py:40 validate
    run | 50 training 100 ms
    run | training 600 ms: evaluation 500 ms, program 500 ms at train.py:40 validate
    run | 2 evaluations with 40 nodes each
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

The output of a recurrent network at a time of which a loss needs the state only.

    column = 10 us
    mark 1 | sssssssssssssstttttttttttttt
    cpu 1  | aabbccddxxyyzzeeffgghhpprrqq
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear; sequence = 1; line = rnn.py:5 forward
    b = aten::linear; sequence = 2; line = rnn.py:6 forward
    c = aten::linear; sequence = 3; line = rnn.py:5 forward
    d = aten::linear; sequence = 4; line = rnn.py:6 forward
    x = MmBackward0; sequence = 4; forward = d
    y = MmBackward0; sequence = 3; forward = c
    z = MmBackward0; sequence = 1; forward = a
    e = aten::linear; sequence = 5; line = rnn.py:5 forward
    f = aten::linear; sequence = 6; line = rnn.py:6 forward
    g = aten::linear; sequence = 7; line = rnn.py:5 forward
    h = aten::linear; sequence = 8; line = rnn.py:6 forward
    p = MmBackward0; sequence = 8; forward = h
    r = MmBackward0; sequence = 7; forward = g
    q = MmBackward0; sequence = 5; forward = e

A part in evaluation mode in every step, whose features the step's loss needs.

    column = 10 us
    run | before 1 s
    run | 50 training 100 ms: evaluation 30 ms
    run | 50 evaluations with 40 nodes each
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

Evaluations of the run that make no node.

    column = 10 us
    run | before 1 s
    run | 50 training 100 ms
    run | training 600 ms: evaluation 500 ms, program 500 ms at train.py:40 validate
    run | 2 evaluations with 0 nodes each
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
from statistics import median
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.run_lines import where_from_reading
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.detectors.unused_graphs import (
    forward_operators_with_autograd_numbers,
    layers_without_backward,
)
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.analysis.run.evaluations import (
    evaluations_of_run,
    is_short_part_of_every_step,
    line_of_evaluations,
)
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
    layers = _layer_operators_recorded_by_autograd(trace, forward_only)
    if layers.height and forward_only.height >= MIN_CONSECUTIVE_FORWARD_ONLY_STEPS:
        yield _finding(trace, forward_only, layers)
        return
    unused = _unused_layers_in_steps_with_backward(trace, steps)
    if unused.height:
        yield _finding_on_unused_layers(trace, steps, unused)
    elif _evaluations_record_unused_graphs(trace, steps.height):
        yield _finding_on_evaluations_of_run(trace)
    elif forward_only.height >= MIN_CONSECUTIVE_FORWARD_ONLY_STEPS:
        yield Checked("the operators recorded for gradients are no layers of a network")
    else:
        yield Checked(_text_on_absence(trace, steps.height), is_absent=True)


def _evaluations_record_unused_graphs(trace: Trace, step_count: int) -> bool:
    """Returns whether evaluations of the run record graphs that no recorded step has shown used.

    Where every step holds one, the recorded steps show that a later loss needs it: the features of
    a part that stays in evaluation mode.
    """
    if step_count and is_short_part_of_every_step(trace.run):
        return False
    return any(nodes > 0 for nodes in trace.run.evaluation_nodes)


def _text_on_absence(trace: Trace, step_count: int) -> str:
    """Returns where no graph without a backward pass was seen, and where none was looked for."""
    text = f"in {step_count} recorded steps a backward pass uses the graphs that autograd records"
    evaluations = evaluations_of_run(trace.run).len()
    if not evaluations:
        return text
    counted = len(trace.run.evaluation_nodes)
    if counted:
        return f"{text}, and {counted} of the run's evaluations record none"
    return f"{text}; whether the {evaluations} evaluations of the run record any was not counted"


def _unused_layers_in_steps_with_backward(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """Returns layers with an unused graph, if there are some in two steps or more."""
    layers = layers_without_backward(trace, forward_operators_with_autograd_numbers(trace))
    at = _indices_of_steps_at_times(steps, layers["start"])
    # A later step, which was not recorded, may use the graph of the last one.
    within = layers.with_columns(step=at).filter(pl.col("step") < steps.height - 1)
    is_recurring = within["step"].n_unique() >= MIN_CONSECUTIVE_FORWARD_ONLY_STEPS
    return within.drop("step") if is_recurring else layers.clear()


def _finding_on_unused_layers(
    trace: Trace, steps: pl.DataFrame, layer_operators: pl.DataFrame
) -> Finding:
    most = next(slices_by_line(trace, layer_operators))
    per_step = layer_operators.height / max(steps.height - 1, 1)
    return Finding(
        title="Layers record a graph for gradients that the step's backward pass does not use",
        where=most.where,
        count_per_step=per_step,
        confidence="medium",
        evidence=(
            Evidence(
                "layers a step without a backward pass",
                per_step,
                "count",
                most.events(),
                layer_operators["id"].to_numpy(),
            ),
        ),
        fix=Fix(
            "Run what needs no gradients, such as a metric or a validation, without a graph.",
            INFERENCE_MODE_FIX_CODE,
        ),
    )


def _finding_on_evaluations_of_run(trace: Trace) -> Finding:
    nodes = trace.run.evaluation_nodes
    recording = [count for count in nodes if count > 0]
    return Finding(
        title=f"{len(recording)} of {len(nodes)} evaluations of the run record a graph for "
        "gradients",
        where=where_from_reading(line_of_evaluations(trace.run) or {}),
        confidence="high",
        evidence=(
            Evidence("evaluations without a backward pass", float(len(nodes)), "count"),
            Evidence("autograd nodes that one of them records", median(recording), "count"),
        ),
        fix=Fix("Run evaluation without a graph.", INFERENCE_MODE_FIX_CODE),
    )


def _steps_with_autograd_node_counts(trace: Trace) -> pl.DataFrame:
    """Returns each step's number of autograd nodes, and whether no backward pass uses them.

    Columns: `nodes`, how many autograd recorded; `alone`, whether no backward pass uses them.

    The sequence number of an operator is that of the next node; it rises only if one is made.
    """
    steps = steps_with_counted_flags(trace).select("start", "end")
    numbered = forward_operators_with_autograd_numbers(trace)
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
        forward_operators_with_autograd_numbers(trace), names.is_layer_operator
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
