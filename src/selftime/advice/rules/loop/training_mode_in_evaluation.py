"""Evaluation runs with the network in training mode.

## What it means
Steps run the network forward only, and dropout still leaves elements out, or batch norms still use
and update the statistics of each batch: `model.eval()` was not called, or `model.train()` was
called too early. This is a hint on correctness; dropout may be left on to estimate uncertainty.

In the trace: dropout masks that are drawn, or the flag `training` of an `aten::batch_norm` that has
running statistics, in two steps in a row or more without a backward node and an optimizer. Norms
without running statistics, such as instance norms, use those of their input in evaluation too.

## Why it costs
The results are not those of the trained network. The time is small: a mask for each dropout, means
for each batch norm. So no saving is estimated.

## What to do
Call `model.eval()` before evaluation, and `model.train()` when training goes on.

## Fires on
Dropout in steps without a backward pass.

    column = 10 us
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | llllddddllllllllddddllllllllddddllll
    cpu 1  |     nnn         nnn         nnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    l = aten::linear
    d = aten::dropout; line = net.py:9 forward
    n = aten::native_dropout; line = net.py:9 forward

Batch norms that train.

    column = 10 us
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | llllbbbbllllllllbbbbllllllllbbbbllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    l = aten::conv2d
    b = aten::batch_norm; concrete_inputs = ["","","","","","True"]; input_shapes = [[8],[],[],[8]]

## Silent on
Dropout that leaves nothing out.

    column = 10 us
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | llllddddllllllllddddllllllllddddllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    l = aten::linear
    d = aten::dropout

Training.

    column = 10 us
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | llllddddeeeellllddddeeeellllddddeeee
    cpu 1  |     nnn         nnn         nnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    l = aten::linear
    d = aten::dropout
    n = aten::native_dropout
    e = autograd::engine::evaluate_function: NativeDropoutBackward0

Batch norms with the statistics of the training.

    column = 10 us
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | llllbbbbllllllllbbbbllllllllbbbbllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    l = aten::conv2d
    b = aten::batch_norm; concrete_inputs = ["","","","","","False"]; input_shapes = [[8],[],[],[8]]

Instance norms, which have no running statistics.

    column = 10 us
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | lllliiiilllllllliiiilllllllliiiillll
    cpu 1  |     bbb         bbb         bbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    l = aten::conv2d
    i = aten::instance_norm
    b = aten::batch_norm; concrete_inputs = ["","","","","","True"]; input_shapes = [[8],[],[],[]]
"""

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import parse_sizes
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.analysis.run.evaluations import evaluations_of_run
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import is_instant_in_windows, steps_with_counted_flags
from selftime.names.tensor_operators import (
    draws_dropout_mask,
    is_batch_norm,
    is_dropout,
    is_training_batch_norm,
)
from selftime.trace import Trace

MIN_CONSECUTIVE_FORWARD_ONLY_STEPS: Final = 2
"""Smallest number of successive steps without backward pass to report; a single one may be cut
off."""

_NORM_ARGUMENTS: Final = ("concrete_inputs", "input_shapes")
"""Arguments of a batch norm that say whether it would do other in evaluation mode."""

EVALUATION_MODE_FIX_CODE: Final = """model.eval()
with torch.inference_mode():
    for batch in loader:
        output = model(batch)
model.train()"""
"""Example code of the fix: evaluation of the network in evaluation mode."""


@rule(covers=("F4",), needs=("operators", "steps"), min_steps=MIN_CONSECUTIVE_FORWARD_ONLY_STEPS)
def check(trace: Trace) -> Iterator[Outcome]:
    steps = _forward_only_steps(trace)
    if steps.height < MIN_CONSECUTIVE_FORWARD_ONLY_STEPS:
        evaluations = evaluations_of_run(trace.run).len()
        beside = f"; the {evaluations} evaluations of the run are in none" if evaluations else ""
        yield Checked(f"no recorded steps run forward only{beside}", is_absent=True)
        return
    training_operators = _training_mode_operators(trace, steps)
    if not training_operators.height:
        yield Checked(
            "no operator of a step that runs forward only is in training mode", is_absent=True
        )
        return
    yield _finding(trace, steps, training_operators)


def _forward_only_steps(trace: Trace) -> pl.DataFrame:
    """Returns successive steps that have neither a backward pass nor an optimizer step.

    The columns `start` and `end` are in ns.
    """
    steps = steps_with_counted_flags(trace).select("start", "end")
    host = slices_on(trace, "host")
    trains = filter_by_name(
        host, lambda n: names.is_backward_node(n) or names.is_optimizer_annotation(n)
    )
    began = np.sort(trains["start"].to_numpy())
    begin, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    alone = pl.Series(np.searchsorted(began, begin) == np.searchsorted(began, end))
    run = alone.rle_id()
    table = steps.with_columns(alone=alone, run=run)
    return table.filter(
        pl.col("alone") & (pl.len().over("run") >= MIN_CONSECUTIVE_FORWARD_ONLY_STEPS)
    )


def _training_mode_operators(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """Returns the dropout operators in the steps, and the batch norms that run in training mode."""
    host = slices_on(trace, "host").filter(pl.col("duration").is_not_null())
    mine = pl.Series(is_instant_in_windows(host["start"].to_numpy(), steps), dtype=pl.Boolean)
    host = host.filter(mine)
    draws = filter_by_name(host, draws_dropout_mask)
    layers = filter_by_name(host, is_dropout)["id"]
    draws = draws.filter(pl.col("parent").is_in(layers.implode()) | _are_fused_dropouts(draws))
    norms = slices_with_arguments(
        trace, "op_args", filter_by_name(host, is_batch_norm), *_NORM_ARGUMENTS
    )
    told = norms.select(pl.col(_NORM_ARGUMENTS).cast(pl.String)).rows()
    trains = {
        one: _is_in_training_mode(one[0]) and _has_running_statistics(one[1]) for one in set(told)
    }
    norms = norms.filter(pl.Series([trains[one] for one in told], dtype=pl.Boolean))
    return pl.concat([draws, norms.drop(_NORM_ARGUMENTS)]).sort("start", "id")


def _are_fused_dropouts(mask_operators: pl.DataFrame) -> pl.Series:
    operator_names = mask_operators["name"].cast(pl.String).to_list()
    return pl.Series([not name.endswith("bernoulli_") for name in operator_names], dtype=pl.Boolean)


def _has_running_statistics(input_shapes: str | None) -> bool:
    """Returns whether a batch norm's fourth input is a tensor: the running mean.

    Without one it uses the statistics of its input in evaluation too.
    """
    sizes = parse_sizes(input_shapes)
    return len(sizes) > 3 and sizes[3] != ()


def _is_in_training_mode(concrete_inputs: str | None) -> bool:
    try:
        arguments: Any = json.loads(concrete_inputs or "[]")
    except ValueError:
        return False
    values = [str(value) for value in arguments] if isinstance(arguments, list) else []
    return bool(is_training_batch_norm(values))


def _finding(
    trace: Trace, forward_only_steps: pl.DataFrame, training_operators: pl.DataFrame
) -> Finding:
    first = next(
        slices_by_line(trace, training_operators), LineSlices.as_one_group(training_operators)
    )
    step_count = forward_only_steps.height
    count = training_operators.height / step_count
    return Finding(
        title=f"{step_count} steps run forward only, with the network in training mode",
        where=first.where,
        count_per_step=count,
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence("steps that run forward only", step_count, "count"),
            Evidence(
                "dropouts and batch norms in training mode, a step",
                count,
                "count",
                first.events(),
                training_operators["id"].to_numpy(),
            ),
        ),
        fix=Fix("Call `model.eval()` before evaluation.", EVALUATION_MODE_FIX_CODE),
    )
