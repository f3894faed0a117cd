"""The optimizer updates one parameter at a time.

## What it means
`optimizer.step()` runs a handful of operators for each parameter, in a Python loop, instead of a
few that take all parameters at once.

In the trace: no operator within the optimizer's step takes a list of tensors, and those of the loop
run 8 times or more in a step of training.

## Why it costs
Every operator costs its dispatch on the host, several microseconds, whatever its size; on a device
it is a launch of a short kernel. And each reads and writes the parameter anew. On a CPU the loop is
the default of every optimizer.

## What to do
Pass `fused=True` where the optimizer has it (Adam, AdamW, SGD; Adagrad on a CPU), else
`foreach=True`. PyTorch raises an error for a form that an optimizer does not have; the advice names
a form that works for the recorded parameters:

- No fused form takes sparse gradients, as `nn.Embedding(sparse=True)` makes them; only SGD and
  Adagrad take them at all. Leave the parameters that have them in a group of their own.
- No fused form takes complex parameters; `foreach=True` does.
- With `differentiable=True` there is no other form than the loop, and none for LBFGS, Muon and
  SparseAdam.
- An optimizer that is not PyTorch's own may have neither: look at what its constructor takes.
- `load_state_dict` of a checkpoint that was written without the form takes it back.

The estimate removes 80 % of the loop's time for `fused=True`, and 40 % for `foreach=True`. On a CPU
the latter runs the same operators on each parameter, and saves only what is between them. A call
costs about an iteration of the loop beside it: of Adam with 1, 2, 4, 8 and 16 small parameters on a
CPU, `fused=True` saved 32 %, 50 %, 60 %, 71 % and 77 %. Where a framework steps several optimizers
on one line, their loops count together.

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

The same behind the passes of a closure, which the step calls first.

    column = 20 us
    mark 1 | ssssssssssssssssssssssssttttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuuuu
    mark 1 |   oooooooooooooooooooooo  oooooooooooooooooooooo  oooooooooooooooooooooo
    cpu 1  |   ffggmamamamamamamamama  ffggmamamamamamamamama  ffggmamamamamamamamama
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = Optimizer.step#Adam.step
    f = aten::linear; sequence = 7
    g = autograd::engine::evaluate_function: AddmmBackward0
    m = aten::mul_
    a = aten::add_

Several optimizers with a few parameters each, which a framework steps on one line.

    column = 20 us
    mark 1 | ssssssssssssssssssssssssttttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuuuu
    mark 1 |     ooooooooo ooooooooo     ooooooooo ooooooooo     ooooooooo ooooooooo
    cpu 1  | ffffmamamamam mamamamam ffffmamamamam mamamamam ffffmamamamam mamamamam
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
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.detectors.optimizer_steps import (
    FOREACH_OPTIMIZERS,
    LOOP_ONLY_OPTIMIZERS,
    OptimizerForm,
    OptimizerUpdates,
    fastest_optimizer_form,
    optimizer_step_slices,
    optimizer_updates,
)
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import (
    Argument,
    Checked,
    Confidence,
    Evidence,
    Finding,
    Fix,
    Outcome,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim, SavingRange
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.trace import Trace
from selftime.units import count_text, whole_percent_text

MIN_EXPOSED_OPTIMIZER_SHARE_OF_STEP: Final = 0.03
"""Smallest share of the step that the optimizer takes, where no other work hides it, to report."""

MIN_CALL_SHARE_OF_LOOP_OPERATOR: Final = 0.03
"""Smallest share of all operator calls for an operator to be in the loop's body, which has about
ten, and Adam's 26 with those that they call."""

CLIPPING_OPERATORS: Final = ("aten::_foreach_norm", "aten::_foreach_mul_")
"""Operators that clip gradients, which frameworks do within the optimizer's step. An optimizer that
updates all parameters at once runs others, too."""

MIN_PARAMETERS_UPDATED_IN_LOOP: Final = 8
"""Smallest number of parameters for which a loop is slower than one operator for all."""

LOOP_TIME_SHARE_SAVED_BY_FUSED: Final = 0.8
"""Share of the loop's time that `fused=True` saves: AdamW with 150 tensors on a CPU took 0.64 ms
instead of 3.6 ms."""

LOOP_TIME_SHARE_SAVED_BY_FOREACH: Final = 0.4
"""Share of the loop's time that `foreach=True` saves: AdamW with 150 tensors on a CPU took 2.2 ms
instead of 3.6 ms."""


@rule(covers=("F1",), needs=("steps",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    rows = trace.view("annotations").iter_rows(named=True)
    regions = [row for row in rows if names.is_optimizer_step(row["name"])]
    if limits is None or not regions:
        yield Checked("no optimizer step is in this trace", is_absent=True)
        return
    for row in regions:
        updates = optimizer_updates(trace, optimizer_step_slices(trace, row))
        exposed = limits.scaled_to_typical_step(updates.time_share * row["exposed_time"] / 1e6)
        location = where_from_row(row)
        optimizer = f"`{row['name']}`" + ("" if location.file is None else f" ({location})")
        if exposed < MIN_EXPOSED_OPTIMIZER_SHARE_OF_STEP * limits.step_ms:
            least = whole_percent_text(MIN_EXPOSED_OPTIMIZER_SHARE_OF_STEP)
            yield Checked(f"{optimizer} takes less than {least} of the step", exposed)
            continue
        reason = _reason_to_keep_optimizer_form(row, updates)
        if reason is not None:
            yield Checked(f"{optimizer}: {reason}", exposed)
        else:
            own = limits.with_noise(row["deviation"] / 1e6)
            yield _finding(row, updates, own, exposed)


def _reason_to_keep_optimizer_form(
    optimizer_annotation: Mapping[str, Any], updates: OptimizerUpdates
) -> str | None:
    """Returns why the optimizer's implementation should stay as it is; None if it should change."""
    iterations = _parameter_loop_iterations_per_step(optimizer_annotation, updates)
    optimizer = names.optimizer_class(optimizer_annotation["name"])
    if iterations is None:
        return "its operators update all parameters at once"
    if iterations < MIN_PARAMETERS_UPDATED_IN_LOOP:
        count = _operator_count_text(round(_operators_per_step(optimizer_annotation, updates)))
        return f"the optimizer runs only {count} a step"
    if optimizer in LOOP_ONLY_OPTIMIZERS:
        return f"it updates one parameter at a time, and PyTorch's {optimizer} can do no other"
    if updates.is_recorded and optimizer in FOREACH_OPTIMIZERS:
        return (
            "autograd records the optimizer: with `differentiable=True` it has no other form than "
            "the loop"
        )
    return None


def _parameter_loop_iterations_per_step(
    optimizer_annotation: Mapping[str, Any], updates: OptimizerUpdates
) -> float | None:
    """Returns how many parameters are looped over in a step of training; None without such a loop.

    Several optimizers, which one line of a framework steps, count together. The operators of the
    loop run once per iteration or more: the least of their counts is used. Operators on sparse
    gradients belong to another loop, which has few iterations.
    """
    table = updates.operators["name"].cast(pl.String).value_counts(name="count")
    table = table.filter(~pl.col("name").is_in(CLIPPING_OPERATORS))
    updates_all_at_once = any(map(names.is_multi_tensor_operator, table["name"].to_list()))
    if table.is_empty() or updates_all_at_once:
        return None
    sparse = [names.is_sparse_operator(name) for name in table["name"].to_list()]
    counts: list[int] = table.filter(~pl.Series(sparse, dtype=pl.Boolean))["count"].to_list()
    usual = [count for count in counts if count >= MIN_CALL_SHARE_OF_LOOP_OPERATOR * sum(counts)]
    return float(min(usual, default=0)) * _per_step_factor(optimizer_annotation, updates)


def _per_step_factor(optimizer_annotation: Mapping[str, Any], updates: OptimizerUpdates) -> float:
    """Returns the factor from a count in all recorded calls to that in a training step."""
    return float(optimizer_annotation["count_per_step"]) / max(updates.calls, 1)


def _operators_per_step(
    optimizer_annotation: Mapping[str, Any], updates: OptimizerUpdates
) -> float:
    """Returns the number of operators of the optimizer's own in a step of training."""
    if updates.time_share == 1:
        return float(optimizer_annotation["operators"])
    return updates.operators.height * _per_step_factor(optimizer_annotation, updates)


def _finding(
    optimizer_annotation: Mapping[str, Any],
    updates: OptimizerUpdates,
    statistics: StepStatistics,
    exposed_ms: float,
) -> Finding:
    optimizer = names.optimizer_class(optimizer_annotation["name"])
    form = fastest_optimizer_form(optimizer, updates)
    is_fused = form == "fused"
    saved_share, least_saved_share = (
        (LOOP_TIME_SHARE_SAVED_BY_FUSED, LOOP_TIME_SHARE_SAVED_BY_FOREACH)
        if is_fused
        else (LOOP_TIME_SHARE_SAVED_BY_FOREACH, LOOP_TIME_SHARE_SAVED_BY_FOREACH / 2)
    )
    between_operators = 1.0
    if not is_fused and not updates.on_device:
        between_operators = updates.time_share_between_operators
        saved_share, least_saved_share = min(saved_share, between_operators), 0.0
    iterations = _parameter_loop_iterations_per_step(optimizer_annotation, updates) or 0.0
    of_loop = _loop_share_of_call(iterations / max(optimizer_annotation["count_per_step"], 1))
    saved_share, least_saved_share = saved_share * of_loop, least_saved_share * of_loop
    claim = RemovalClaim(
        (CutHostTime(updates.dense_update_times, 1 - saved_share),),
        worst_case_changes=(CutHostTime(updates.dense_update_times, 1 - least_saved_share),),
        largest_changes=(CutHostTime(updates.dense_update_times, 1 - between_operators),),
        interval=SavingRange(1.0, None),
        noise_ms=statistics.noise_ms,
        phase="optimizer",
    )
    count = _operators_per_step(optimizer_annotation, updates)
    sparse = updates.sparse_operators.height * _per_step_factor(optimizer_annotation, updates)
    return Finding(
        title=f"{optimizer} runs {count_text(count)} operators a step, one parameter at a time",
        where=where_from_row(optimizer_annotation),
        count_per_step=optimizer_annotation["count_per_step"],
        claim=claim,
        confidence=_confidence_in_optimizer_form(form, updates),
        evidence=(
            Evidence(
                "exposed optimizer step time", exposed_ms, "ms", (optimizer_annotation["first"],)
            ),
            Evidence("operators a step", count, "count"),
            Evidence("loop iterations", iterations, "count"),
            *([Evidence("operators on sparse gradients", sparse, "count")] if sparse else []),
        ),
        fix=_optimizer_fix(optimizer, form, updates),
    )


def _loop_share_of_call(parameters: float) -> float:
    """Returns which share of an optimizer's time is its loop; the rest is about an iteration.

    Args:
        parameters: The number of parameters that a call updates, of several optimizers the mean.
    """
    return parameters / (parameters + 1.0)


def _confidence_in_optimizer_form(
    suggested_form: OptimizerForm | None, updates: OptimizerUpdates
) -> Confidence:
    if suggested_form is None:
        return "low"
    return "high" if suggested_form == "fused" and not updates.sparse_operators.height else "medium"


def _optimizer_fix(
    optimizer_name: str, suggested_form: OptimizerForm | None, updates: OptimizerUpdates
) -> Fix:
    """Returns the fix: how to construct the optimizer with the suggested implementation."""
    if suggested_form is None:
        text = (
            f"Let {optimizer_name} update all parameters in one operator, if its constructor takes "
            "`foreach` or `fused`: it is not one of PyTorch's optimizers."
        )
        return Fix(text, f"{optimizer_name}(..., foreach=True)")
    needs = (
        ""
        if suggested_form == "foreach" or updates.version
        else " PyTorch has this form from version 2.4 on."
    )
    if not updates.sparse_operators.height:
        text = f"Let {optimizer_name} update all parameters in one operator.{needs}"
        code = f"torch.optim.{optimizer_name}(..., {suggested_form}=True)"
        return Fix(text, code, Argument("optimizer", suggested_form, "True", optimizer_name))
    text = (
        f"Let {optimizer_name} update all parameters with dense gradients in one operator. Those "
        "with sparse ones, as `nn.Embedding(sparse=True)` makes them, stay in a group without it: "
        f"`{suggested_form}=True` is of no use there, or an error.{needs}"
    )
    code = (
        f"torch.optim.{optimizer_name}(\n"
        f'    [{{"params": dense, "{suggested_form}": True}}, {{"params": sparse}}], ...)'
    )
    return Fix(text, code)


def _operator_count_text(count: int) -> str:
    return "1 operator" if count == 1 else f"{count_text(count)} operators"
