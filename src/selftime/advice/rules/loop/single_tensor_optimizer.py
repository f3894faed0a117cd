"""The optimizer updates one parameter at a time.

## What it means
`optimizer.step()` runs a handful of operators for each parameter, in a Python loop, instead of a
few that take all parameters at once.

## Why it costs
Every operator costs its dispatch on the host, several microseconds, whatever its size; on a device
it is a launch of a short kernel. And each reads and writes the parameter anew. On a CPU the loop is
the default of every optimizer.

## What to do
Pass `fused=True` where the optimizer has it (Adam, AdamW, SGD, Adagrad), else `foreach=True`.

## Fires on
Many small operators under the optimizer's step, the same for each parameter.

    column = 20 us
    mark 1 | ssssssssssssssssssssssttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuu
    mark 1 |     oooooooooooooooooo    oooooooooooooooooo    oooooooooooooooooo
    cpu 1  | ffffmamamamamamamamamaffffmamamamamamamamamaffffmamamamamamamamama
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = Optimizer.step#SGD.step
    m = aten::mul_
    a = aten::add_

## Silent on
A fused optimizer.

    column = 20 us
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 |     oooooooo    oooooooo    oooooooo
    cpu 1  | ffff xxxxx  ffff xxxxx  ffff xxxxx
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = Optimizer.step#AdamW.step
    x = aten::_fused_adamw_

An optimizer that runs while the device works on what came before: nothing is exposed.

    column = 20 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    mark 1 |     oooooooooooooooo    oooooooooooooooo    oooooooooooooooo
    cpu 1  | k   mamamamamamamama    mamamamamamamama    mamamamamamamama
    call 1 | k
    gpu 7  | kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = Optimizer.step#SGD.step
    m = aten::mul_
    a = aten::add_
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule, where
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.parents import parents
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

EXPOSED_SHARE: Final = 0.03
"""An optimizer below this share of the step is not worth a change."""

LOOP_SHARE: Final = 0.05
"""An operator with less of the calls is not of the loop's body, which has about ten operators."""

LEAST_PARAMETERS: Final = 8
"""For fewer parameters a loop is as good as anything."""

SAVED: Final = 0.8
"""Of the loop's time that `fused=True` saves: AdamW, 150 tensors, CPU: 3.6 to 0.64 ms."""

SAVED_AT_LEAST: Final = 0.4
"""Of the loop's time that `foreach=True` saves in the same measurement: 3.6 to 2.2 ms."""

FUSED: Final = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers that have a fused form."""


@rule(covers=("F1",), needs=("steps",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    rows = trace.view("annotations").iter_rows(named=True)
    regions = [row for row in rows if names.is_optimizer_step(row["name"])]
    if limits is None or not regions:
        yield Checked("no optimizer step is in this trace", is_absent=True)
        return
    for row in regions:
        exposed = limits.typical(row["exposed_time"] / 1e6)
        upper = limits.unrecorded(exposed)
        place = where(row)
        named = f"`{row['name']}`" + ("" if place.file is None else f" ({place})")
        if exposed < EXPOSED_SHARE * limits.step_ms:
            yield Checked(f"{named} takes {upper:.2f} ms of the step", upper)
            continue
        rounds = _rounds(trace, row)
        if rounds is None:
            yield Checked(f"{named} takes all parameters at once", upper)
        elif rounds < LEAST_PARAMETERS:
            yield Checked(f"{named} runs only {row['operators']:.0f} operators a step", upper)
        else:
            own = limits.of_cause(row["deviation"] / 1e6)
            yield own.judge(_finding(trace, row, rounds, own))


def _rounds(trace: Trace, row: dict[str, Any]) -> float | None:
    """How many times the loop goes round in one run; None if operators take all parameters at once.

    The operators that make up the loop run once a round or more: the least of their counts tells.
    """
    runs = filter_by_name(slices_on(trace, "host"), lambda name: name == row["name"])
    table = _operators_within(trace, runs["id"])
    if table.is_empty() or any(
        names.is_multi_tensor_operator(name) for name in table["name"].to_list()
    ):
        return None
    counts: list[int] = table["count"].to_list()
    usual = [count for count in counts if count >= LOOP_SHARE * sum(counts)]
    return float(min(usual, default=0)) / max(runs.height, 1)


def _operators_within(trace: Trace, runs: pl.Series) -> pl.DataFrame:
    """Name and count of the operators in some slices; what calls itself by name counts once."""
    name = trace.slices["name"]
    is_run = np.zeros(name.len(), bool)
    is_run[runs.to_numpy()] = True
    at = np.flatnonzero(trace.slices["category"].is_in(list(names.OPERATORS)).to_numpy())
    parent = parents(trace)
    at = at[nearest(parent, is_run, at) != NONE]
    codes = name.to_physical().to_numpy()
    at = at[codes[at] != codes[parent[at]]]
    counts = name.gather(at).value_counts(name="count")
    return counts.with_columns(pl.col("name").cast(pl.String))


def _finding(trace: Trace, row: dict[str, Any], rounds: float, limits: Gate) -> Finding:
    optimizer = names.optimizer_of(row["name"])
    fused = optimizer in FUSED
    argument = "fused=True" if fused else "foreach=True"
    saved, at_least = (SAVED, SAVED_AT_LEAST) if fused else (SAVED_AT_LEAST, SAVED_AT_LEAST / 2)
    steps = covered_time(filter_by_name(slices_on(trace, "host"), lambda name: name == row["name"]))
    loop = Cut(steps, 1 - saved)
    saving = priced(trace, limits, loop, most=(Cut(steps),))
    least = priced(trace, limits, Cut(steps, 1 - at_least)).estimate_ms or 0.0
    return Finding(
        title=f"{optimizer} runs {row['operators']:.0f} operators a step, one parameter at a time",
        where=where(row),
        count_per_step=row["count_per_step"],
        saving=replace(
            saving, low_ms=min(least, saving.estimate_ms or 0.0), high_ms=saving.upper_ms
        ),
        confidence="high" if fused else "medium",
        evidence=(
            Evidence(
                "optimizer step, exposed",
                limits.typical(row["exposed_time"] / 1e6),
                "ms",
                (row["first"],),
            ),
            Evidence("operators a step", row["operators"], "count"),
            Evidence("rounds of the loop", rounds, "count"),
        ),
        fix=Fix(
            f"Let {optimizer} update all parameters in one operator.",
            f"torch.optim.{optimizer}(..., {argument})",
        ),
        changes=(loop,),
    )
