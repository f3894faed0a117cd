"""Evaluation runs with the network in training mode.

## What it means
Steps run the network forward only, and dropout still leaves elements out, or batch norms still use
and update the statistics of each batch: `model.eval()` was not called, or `model.train()` was
called too early. A hint on correctness; dropout that is left on to estimate uncertainty is meant.

## Why it costs
The results are those of another network than the one that is meant. The time is small: a mask for
each dropout, means for each batch norm. So no number is given.

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
    b = aten::batch_norm; concrete_inputs = ["","","","","","True","0.1","1e-05","True"]

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
    b = aten::batch_norm; concrete_inputs = ["","","","","","False","0.1","1e-05","True"]
"""

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule
from selftime.advice.detectors.places import Place, places
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import assessed_steps, is_within
from selftime.names.tensors import (
    draws_dropout_mask,
    is_batch_norm,
    is_dropout,
    is_training_batch_norm,
)
from selftime.trace import Trace

LEAST_STEPS: Final = 2
"""A single step without a backward pass may be the first half of one that was cut."""

CODE: Final = """model.eval()
with torch.inference_mode():
    for batch in loader:
        output = model(batch)
model.train()"""
"""Evaluation of the network that is meant."""


@rule(covers=("F4",), needs=("operators", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    steps = _forward_only(trace)
    if steps.height < LEAST_STEPS:
        yield Checked("no steps run forward only", is_absent=True)
        return
    train = _in_training_mode(trace, steps)
    if not train.height:
        yield Checked(
            "no operator of a step that runs forward only is in training mode", is_absent=True
        )
        return
    yield _finding(trace, steps, train)


def _forward_only(trace: Trace) -> pl.DataFrame:
    """Start and end of the steps without a backward pass and without an optimizer, in a row."""
    steps = assessed_steps(trace).select("start", "end")
    host = slices_on(trace, "host")
    trains = filter_by_name(host, lambda n: names.is_backward_node(n) or names.is_optimizer(n))
    began = np.sort(trains["start"].to_numpy())
    begin, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    alone = pl.Series(np.searchsorted(began, begin) == np.searchsorted(began, end))
    run = alone.rle_id()
    told = steps.with_columns(alone=alone, run=run)
    return told.filter(pl.col("alone") & (pl.len().over("run") >= LEAST_STEPS))


def _in_training_mode(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """Draws of dropouts, and batch norms that say that they train, in these steps."""
    host = slices_on(trace, "host").filter(pl.col("duration").is_not_null())
    mine = pl.Series(is_within(host["start"].to_numpy(), steps), dtype=pl.Boolean)
    host = host.filter(mine)
    draws = filter_by_name(host, draws_dropout_mask)
    layers = filter_by_name(host, is_dropout)["id"]
    draws = draws.filter(pl.col("parent").is_in(layers.implode()) | _is_fused(draws))
    norms = with_arguments(trace, "op_args", filter_by_name(host, is_batch_norm), "concrete_inputs")
    norms = norms.with_columns(pl.col("concrete_inputs").cast(pl.String))
    trains = {text: _trains(text) for text in norms["concrete_inputs"].unique().to_list()}
    norms = norms.filter(pl.Series([trains[t] for t in norms["concrete_inputs"]], dtype=pl.Boolean))
    return pl.concat([draws, norms.drop("concrete_inputs")]).sort("start", "id")


def _is_fused(draws: pl.DataFrame) -> pl.Series:
    text = draws["name"].cast(pl.String).to_list()
    return pl.Series([not name.endswith("bernoulli_") for name in text], dtype=pl.Boolean)


def _trains(concrete_inputs: str | None) -> bool:
    try:
        told: Any = json.loads(concrete_inputs or "[]")
    except ValueError:
        return False
    values = [str(value) for value in told] if isinstance(told, list) else []
    return bool(is_training_batch_norm(values))


def _finding(trace: Trace, steps: pl.DataFrame, train: pl.DataFrame) -> Finding:
    first = next(places(trace, train), Place.of(train))
    count = train.height / steps.height
    return Finding(
        title=f"{steps.height} steps run forward only, with the network in training mode",
        where=first.where,
        count_per_step=count,
        saving=Saving(),
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence("steps that run forward only", steps.height, "count"),
            Evidence("dropouts and batch norms that train, a step", count, "count", first.events()),
        ),
        fix=Fix("Call `model.eval()` before evaluation.", CODE),
    )
