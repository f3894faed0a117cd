"""A loop calls a model with one sample at a time.

## What it means
The program goes through samples in Python and calls the model for each, though it takes batches,
and no round of the loop needs the result of another one.

In the trace: a module is called from one function of the program eight times a step or more, or
once in each step of a program that only infers, and its first layer gets one sample. The source of
that function shows a loop in which nothing that the call takes is made of what it gave before.
Recurrent networks, generated text and actions in an environment so are no finding; nor is a program
whose source cannot be read: then the rule cannot tell.

## Why it costs
Each call runs all operators of the model, which take their dispatch, about 5 us each with Python
around it, or the launch of a kernel that fills a fraction of the device. Products of matrices read
all weights again for a single row.

## What to do
Stack the samples and call the model once; shorter ones are filled up and masked. Where all do not
fit into memory, in batches of 32 or more.

The estimate leaves half of the operators' time beyond 5 us each: it is work that a batch does
faster, by how much no trace shows. The lower end leaves all of it, the bound a single round.

## Fires on
A comprehension that calls a model eight times.

    column = 10 us
    mark 1   | sssssssssssssssssssssssssttttttttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffffffffffffff
    python 1 | eeeeeeeeeeeeeeeeeeeeeeee eeeeeeeeeeeeeeeeeeeeeeee
    python 1 | nn nn nn nn nn nn nn nn  nn nn nn nn nn nn nn nn
    cpu 1    | l  l  l  l  l  l  l  l   l  l  l  l  l  l  l  l
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = infer.py(3): main
    e = infer.py(12): <listcomp>
    n = nn.Module: Net_0; module_id = 1
    l = aten::linear; input_shapes = [[1,8],[4,8],[4]]

## Silent on
The same for batches.

    column = 10 us
    mark 1   | sssssssssssssssssssssssssttttttttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffffffffffffff
    python 1 | eeeeeeeeeeeeeeeeeeeeeeee eeeeeeeeeeeeeeeeeeeeeeee
    python 1 | nn nn nn nn nn nn nn nn  nn nn nn nn nn nn nn nn
    cpu 1    | l  l  l  l  l  l  l  l   l  l  l  l  l  l  l  l
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = infer.py(3): main
    e = infer.py(12): <listcomp>
    n = nn.Module: Net_0; module_id = 1
    l = aten::linear; input_shapes = [[64,8],[4,8],[4]]

Several models, each called once.

    column = 10 us
    mark 1   | sssssssssssssssssssssttttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffffff
    python 1 | aaa bbb ccc ddd      aaa bbb ccc ddd
    cpu 1    | ll  ll  ll  ll       ll  ll  ll  ll
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = infer.py(3): main
    a = nn.Module: Net_0; module_id = 1
    b = nn.Module: Net_1; module_id = 2
    c = nn.Module: Net_2; module_id = 3
    d = nn.Module: Net_3; module_id = 4
    l = aten::linear; input_shapes = [[1,8],[4,8],[4]]
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import backward_slices_of, outermost_operators
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    significance_limits_for_cause,
    slices_in_counted_steps,
    union_of_interval_sets,
)
from selftime.advice.detectors.operator_changes import device_work_launched_during
from selftime.advice.detectors.single_sample_calls import (
    MIN_CALLS_IN_LOOP,
    SingleSampleLoop,
    operators_of_calls,
    single_sample_loops,
)
from selftime.advice.detectors.token_decoding import token_decoding_of
from selftime.advice.lines.line_from_source import syntax_scope_of_place
from selftime.advice.lines.loop_dependence import (
    CallInLoop,
    attributes_kept_between_calls,
    calls_in_loops,
    does_round_need_earlier_one,
)
from selftime.advice.lines.source_syntax import SyntaxScope
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim, SavingRange
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_arguments import caller_of_every_frame
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.source_sites import source_sites_of_slices
from selftime.intervals import Intervals, length
from selftime.names.tensor_operators import is_batch_norm
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace
from selftime.units import count_text

OPERATOR_OVERHEAD_NS: Final = 5_000
"""Assumed time of an operator or kernel, in ns, that does not grow with the batch."""

BATCHED_WORK_SHARE: Final = 0.5
"""Assumed share of the other work that a batch takes, for the same samples."""

ASSUMED_BATCH: Final = 32
"""Number of rounds that one call replaces where each round is a step and their number is unknown.
"""

FIX_CODE: Final = """results = [model(sample[None])[0] for sample in samples]   # before

results = model(torch.stack(samples))                      # after"""
"""Example code of the fix: one call for all samples replaces the loop."""


@rule(covers=("D10",), needs=("operators", "modules", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    loops = [] if step_stats is None else list(single_sample_loops(trace))
    if step_stats is None or not loops:
        yield Checked("no loop calls a model with one sample at a time", is_absent=True)
        return
    if token_decoding_of(trace) is not None:
        yield Checked("each step makes a token of a language model, which needs the one before")
        return
    for loop in loops:
        yield _outcome(trace, step_stats, loop)


def _outcome(trace: Trace, step_stats: StepStatistics, loop: SingleSampleLoop) -> Outcome:
    if loop.is_step and filter_by_name(slices_on(trace, "host"), names.is_backward_node).height:
        return Checked("each step trains on one sample; see `small_batch`")
    if _optimizer_steps(trace) >= MIN_CALLS_IN_LOOP * counted_step_count(trace):
        return Checked(f"`{loop.model}` is trained between its calls")
    site = pl.Series([loop.frame], dtype=pl.UInt32)
    place = where_from_row(source_sites_of_slices(trace, site).row(0, named=True))
    if names.is_comprehension(str(trace.slices["name"][loop.frame])):
        return _finding(trace, step_stats, loop, place)  # it assigns nothing
    calls = _calls_in_source(trace, loop, place)
    if calls is None:
        return Unknown(
            f"the source of the loop that calls `{loop.model}`, to see whether its rounds need "
            "each other: run `advise` where the program's files are"
        )
    reason = _reason_against_batch(trace, loop, calls)
    if reason is not None:
        return Checked(f"`{loop.model}` gets one sample at a time, {reason}")
    lines = {call.line for call in calls}
    if len(lines) == 1:
        place = replace(place, line=lines.pop(), how="static")
    return _finding(trace, step_stats, loop, place)


def _optimizer_steps(trace: Trace) -> int:
    """Returns how many steps optimizers take in the counted steps."""
    steps = filter_by_name(slices_on(trace, "host"), names.is_optimizer_step)
    return slices_in_counted_steps(trace, steps).height


def _reason_against_batch(
    trace: Trace, loop: SingleSampleLoop, calls: list[CallInLoop]
) -> str | None:
    """Returns why the samples cannot be put into a batch, by the source; None if they can."""
    if not calls:
        return "from no loop that the source shows"
    if any(does_round_need_earlier_one(call) for call in calls):
        return "and each call needs the one before"
    if loop.is_step and any(isinstance(call.loop, ast.While) for call in calls):
        return "as they come"
    kept = attributes_kept_between_calls(_scopes_called(trace, loop))
    return f"and keeps `self.{kept[0]}` from one call to the next" if kept else None


def _calls_in_source(trace: Trace, loop: SingleSampleLoop, place: Where) -> list[CallInLoop] | None:
    """Returns the calls in loops that may be those of the model; None if the source is unknown.

    A module is called by any name: it is one that no recorded call of the function has.
    """
    scope = syntax_scope_of_place(trace, place)
    if scope is None:
        return None
    told = list(calls_in_loops(scope))
    if loop.callee is not None:
        return [call for name, call in told if name == loop.callee]
    other = _names_of_other_calls(trace, loop.frame) | set(dir(builtins))
    return [call for name, call in told if name not in other]


def _scopes_called(trace: Trace, loop: SingleSampleLoop) -> Iterator[SyntaxScope]:
    """Yields the source of each function that runs within the calls of the model, where known."""
    caller = caller_of_every_frame(trace)
    is_call = np.zeros(trace.slices.height, np.bool_)
    is_call[loop.calls["id"].to_numpy()] = True
    frames = trace.frame_args["id"].to_numpy()
    within = frames[nearest_ancestor(caller, is_call, frames) != NO_SLICE]
    texts = trace.slices["name"].gather(within).unique().sort().cast(pl.String)
    for frame in filter(None, map(names.parse_frame, texts)):
        if frame.origin == "user":
            place = Where(frame.file, frame.line, frame.function)
            scope = syntax_scope_of_place(trace, place)
            if scope is not None:
                yield scope


def _names_of_other_calls(trace: Trace, frame: int) -> set[str]:
    """Returns the names of the functions, besides modules, that a frame was seen to call."""
    called = np.flatnonzero(caller_of_every_frame(trace) == frame)
    texts = trace.slices["name"].gather(called).unique().cast(pl.String)
    return {name for name in map(names.called_function, texts) if name is not None}


def _finding(
    trace: Trace, step_stats: StepStatistics, loop: SingleSampleLoop, place: Where
) -> Finding:
    steps, forward, ops = (
        counted_step_count(trace),
        covered_time(loop.calls),
        operators_of_calls(trace, loop.calls, outermost_operators(trace)),
    )
    times = union_of_interval_sets(forward, covered_time(backward_slices_of(trace, ops)))
    own = significance_limits_for_cause(trace, step_stats, times)
    batch = ASSUMED_BATCH if loop.is_step else loop.calls_per_step
    spent = step_stats.scaled_to_typical_step(length(times) / steps / 1e6)
    often = "once" if loop.is_step else f"{count_text(loop.calls_per_step)} times"
    return Finding(
        title=f"A loop calls `{loop.model}` {often} a step, with one sample",
        where=place,
        count_per_step=loop.calls_per_step,
        claim=RemovalClaim(
            _changes(trace, times, BATCHED_WORK_SHARE, batch),
            worst_case_changes=_changes(trace, times, 1.0, batch),
            largest_changes=_changes(trace, times, 0.0, batch),
            interval=SavingRange(1.0, None),
            noise_ms=own.noise_ms,
        ),
        confidence="medium",
        semantics="training" if _normalizes_batches(trace, ops) else "numerics",
        evidence=(
            Evidence("time of the calls and of their backward pass", spent, "ms", _events(loop)),
            Evidence("calls a step", loop.calls_per_step, "count", (), loop.calls["id"].to_numpy()),
        ),
        fix=Fix("Stack the samples, and call the model once.", FIX_CODE),
    )


def _events(loop: SingleSampleLoop) -> tuple[int, ...]:
    longest = loop.calls.sort("duration", "id", descending=[True, False]).head(3)
    return tuple(longest["id"].to_list())


def _normalizes_batches(trace: Trace, operators: pl.DataFrame) -> bool:
    """Returns whether the result for a sample depends on those beside it: batch norm trains."""
    trains = backward_slices_of(trace, operators).height > 0
    return trains and filter_by_name(operators, is_batch_norm).height > 0


def _changes(trace: Trace, times: Intervals, work_share: float, batch: float) -> tuple[Change, ...]:
    """Returns changes that leave a share of the operators' work, and one round of their overhead.

    Overhead is the first microseconds of an operator or kernel, and the host's time between them.
    """
    operators = outermost_operators(trace)
    within = operators.filter(begins_during_intervals(operators, times))
    own = np.maximum(within["duration"].to_numpy() - OPERATOR_OVERHEAD_NS, 0).sum()
    work = min(float(own) / max(length(times), 1), 1.0)
    on_device = device_work_launched_during(trace, times)
    if not on_device.height:
        return (CutHostTime(times, _kept_share(work, work_share, batch)),)
    durations = (on_device["end"] - on_device["start"]).to_numpy()
    computing = np.maximum(durations - OPERATOR_OVERHEAD_NS, 0) / np.maximum(durations, 1)
    ids = on_device["id"].cast(pl.Int64).to_numpy()
    kept = np.maximum(computing * work_share, 1 / batch) + (1 - computing) / batch
    return CutHostTime(times, 1 / batch), ScaleDeviceWork(ids, np.minimum(kept, 1.0))


def _kept_share(work: float, work_share: float, batch: float) -> float:
    return min(max(work * work_share, work / batch) + (1 - work) / batch, 1.0)
