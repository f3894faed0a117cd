"""The optimizer updates one parameter at a time.

## What it means
`optimizer.step()` runs a handful of operators for each parameter, in a Python loop, instead of a
few that take all parameters at once.

## Why it costs
Every operator costs its dispatch on the host, several microseconds, whatever its size; on a device
it is a launch of a short kernel. And each reads and writes the parameter anew. On a CPU the loop is
the default of every optimizer.

## What to do
Pass `fused=True` where the optimizer has it (Adam, AdamW, SGD; Adagrad on a CPU), else
`foreach=True`. PyTorch refuses what an optimizer cannot do with an error, so only that is advised
which works for the parameters that were seen:

- No fused form takes sparse gradients, as `nn.Embedding(sparse=True)` makes them; only SGD and
  Adagrad take them at all. Leave the parameters that have them in a group of their own.
- No fused form takes complex parameters; `foreach=True` does.
- With `differentiable=True` there is no other form than the loop, and none for LBFGS, Muon and
  SparseAdam.
- An optimizer that is not PyTorch's own may have neither: look at what its constructor takes.

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

The same beside a parameter whose gradient is sparse, which no fused form takes.

    column = 20 us
    mark 1 | ssssssssssssssssssssssssttttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuuuu
    mark 1 |     oooooooooooooooooooo    oooooooooooooooooooo    oooooooooooooooooooo
    cpu 1  | ffffcgmamamamamamamamamaffffcgmamamamamamamamamaffffcgmamamamamamamamama
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = Optimizer.step#Adagrad.step
    c = aten::_coalesce
    g = aten::sparse_mask
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

An optimizer that has no other form.

    column = 20 us
    mark 1 | ssssssssssssssssssssssttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuu
    mark 1 |     oooooooooooooooooo    oooooooooooooooooo    oooooooooooooooooo
    cpu 1  | ffffmamamamamamamamamaffffmamamamamamamamamaffffmamamamamamamamama
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = Optimizer.step#Muon.step
    m = aten::mul_
    a = aten::add_
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Confidence, Evidence, Finding, Fix, Outcome, rule, where
from selftime.advice.detectors.optimizers import (
    FOREACH,
    LOOPED,
    Form,
    Updates,
    form_of,
    runs_of,
    updates_of,
)
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
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
        updates = updates_of(trace, runs_of(trace, row))
        reason = _reason(row, updates)
        if reason is not None:
            yield Checked(f"{named} {reason}", upper)
        else:
            own = limits.of_cause(row["deviation"] / 1e6)
            yield own.judge(_finding(trace, row, updates, own))


def _reason(row: Mapping[str, Any], updates: Updates) -> str | None:
    """Why no other form of the optimizer is worth a change, if none is."""
    rounds = _rounds(updates)
    optimizer = names.optimizer_of(row["name"])
    if rounds is None:
        return "takes all parameters at once"
    if rounds < LEAST_PARAMETERS:
        return f"runs only {row['operators']:.0f} operators a step"
    if optimizer in LOOPED:
        return f"updates one parameter at a time, and PyTorch's {optimizer} can do no other"
    if updates.is_recorded and optimizer in FOREACH:
        return (
            "is recorded for gradients: with `differentiable=True` it has no other form than the "
            "loop, and with a closure the loop is not all that runs in it"
        )
    return None


def _rounds(updates: Updates) -> float | None:
    """How many times the loop goes round in one run; None if operators take all parameters at once.

    The operators that make up the loop run once a round or more: the least of their counts tells.
    What works on sparse gradients is of another loop, which has few rounds.
    """
    table = updates.operators["name"].cast(pl.String).value_counts(name="count")
    if table.is_empty() or any(
        names.is_multi_tensor_operator(name) for name in table["name"].to_list()
    ):
        return None
    sparse = [names.is_sparse_operator(name) for name in table["name"].to_list()]
    counts: list[int] = table.filter(~pl.Series(sparse, dtype=pl.Boolean))["count"].to_list()
    usual = [count for count in counts if count >= LOOP_SHARE * sum(counts)]
    return float(min(usual, default=0)) / max(updates.runs.height, 1)


def _finding(trace: Trace, row: Mapping[str, Any], updates: Updates, limits: Gate) -> Finding:
    optimizer = names.optimizer_of(row["name"])
    form = form_of(optimizer, updates)
    is_fused = form == "fused"
    saved, at_least = (SAVED, SAVED_AT_LEAST) if is_fused else (SAVED_AT_LEAST, SAVED_AT_LEAST / 2)
    loop = Cut(updates.time, 1 - saved)
    saving = priced(trace, limits, loop, most=(Cut(updates.time),))
    least = priced(trace, limits, Cut(updates.time, 1 - at_least)).estimate_ms or 0.0
    exposed = limits.typical(row["exposed_time"] / 1e6)
    sparse = updates.sparse.height / max(updates.runs.height, 1)
    return Finding(
        title=f"{optimizer} runs {row['operators']:.0f} operators a step, one parameter at a time",
        where=where(row),
        count_per_step=row["count_per_step"],
        saving=replace(
            saving, low_ms=min(least, saving.estimate_ms or 0.0), high_ms=saving.upper_ms
        ),
        confidence=_confidence(form, updates),
        evidence=(
            Evidence("exposed optimizer step time", exposed, "ms", (row["first"],)),
            Evidence("operators a step", row["operators"], "count"),
            Evidence("loop iterations", _rounds(updates), "count"),
            *([Evidence("operators on sparse gradients", sparse, "count")] if sparse else []),
        ),
        fix=_fix(optimizer, form, updates),
        changes=(loop,),
    )


def _confidence(form: Form | None, updates: Updates) -> Confidence:
    if form is None:
        return "low"
    return "high" if form == "fused" and not updates.sparse.height else "medium"


def _fix(optimizer: str, form: Form | None, updates: Updates) -> Fix:
    """What PyTorch is known to accept; of other optimizers, on which condition."""
    if form is None:
        text = (
            f"Let {optimizer} update all parameters in one operator, if its constructor takes "
            "`foreach` or `fused`: it is none of PyTorch's own."
        )
        return Fix(text, f"{optimizer}(..., foreach=True)")
    needs = "" if form == "foreach" or updates.version else " PyTorch has it from version 2.4 on."
    if not updates.sparse.height:
        text = f"Let {optimizer} update all parameters in one operator.{needs}"
        return Fix(text, f"torch.optim.{optimizer}(..., {form}=True)")
    text = (
        f"Let {optimizer} update all parameters with dense gradients in one operator. Those with "
        "sparse ones, as `nn.Embedding(sparse=True)` makes them, stay in a group without it: "
        f"`{form}=True` is of no use there, or an error.{needs}"
    )
    code = (
        f"torch.optim.{optimizer}(\n"
        f'    [{{"params": dense, "{form}": True}}, {{"params": sparse}}], ...)'
    )
    return Fix(text, code)
