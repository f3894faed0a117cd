"""Autograd's anomaly detection is on.

## What it means
`torch.autograd.set_detect_anomaly(True)`, or the context of that name, was left in the program. It
looks for NaN in every gradient, and stores the Python stack at every forward operator.

In the trace: `aten::isnan` as a direct child of a backward node.

## Why it costs
Each check is four operators and reads the gradient once more; on a device the host waits for its
answer each time. Each stack takes 50 us and more. Measured on a small network on a CPU: the step
takes 2.5 times as long.

## What to do
Remove it. It is meant for a few steps, to find the source of a NaN.

The estimate removes the checks, the waits for their answers, and the frames that format stacks.

## Fires on
Checks for NaN within the nodes of the backward pass.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssttttttttttttttttttttttttttttt
    cpu 1  | mmmmmmeeeeeeeeeeffffffff mmmmmmmeeeeeeeeeeeffffffff
    cpu 1  |       bbbbiaxx  bbbbiax         bbbbiaxx   bbbbiax
    s = ProfilerStep#1
    t = ProfilerStep#2
    e = autograd::engine::evaluate_function: MmBackward0; line = train.py:7 main
    f = autograd::engine::evaluate_function: MmBackward0; line = train.py:7 main
    m = aten::mm
    b = MmBackward0
    i = aten::isnan; line = train.py:7 main
    a = aten::any; line = train.py:7 main
    x = aten::is_nonzero; line = train.py:7 main

## Silent on
A program's own check of its loss.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssttttttttttttttttttttttttttttt
    cpu 1  | mmmmmmiaxeeeeeeeffffffff mmmmmmmiaxeeeeeeeeffffffff
    cpu 1  |          bbbb   bbbb               bbbb    bbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    e = autograd::engine::evaluate_function: MmBackward0
    f = autograd::engine::evaluate_function: MmBackward0
    m = aten::mm
    b = MmBackward0
    i = aten::isnan
    a = aten::any
    x = aten::is_nonzero
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import (
    counted_step_count,
    significance_limits_for_cause,
    slices_in_counted_steps,
    union_of_interval_sets,
)
from selftime.advice.detectors.operator_changes import changes_shortening_intervals
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.lines.source_syntax import line_of_only_call
from selftime.advice.replay import Change, RemoveWaits
from selftime.advice.rule_definition import (
    Argument,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Where,
    rule,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, length
from selftime.names.tensor_operators import calls_backward, sets_anomaly_mode
from selftime.trace import Trace
from selftime.units import count_text

DISABLE_ANOMALY_DETECTION_FIX_CODE: Final = """torch.autograd.set_detect_anomaly(False)"""
"""Example code of the fix: switches anomaly detection off, which is the default."""


@rule(covers=("F5", "B10"), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    nan_check_operators = _nan_check_operators(trace)
    if limits is None or not filter_by_name(nan_check_operators, names.is_nan_check).height:
        yield Checked("no node of the backward pass checks for NaN", is_absent=True)
        return
    own = significance_limits_for_cause(trace, limits, covered_time(nan_check_operators))
    yield _finding(trace, own, nan_check_operators)


def _nan_check_operators(trace: Trace) -> pl.DataFrame:
    """Returns the operators that each backward node calls at and after its first NaN check."""
    host = slices_on(trace, "host")
    if not filter_by_name(host, names.is_nan_check).height:
        return host.clear()
    nodes = filter_by_name(trace.slices, names.is_backward_node)["id"]
    within = slices_in_counted_steps(trace, host.filter(pl.col("parent").is_in(nodes.implode())))
    first = (
        filter_by_name(within, names.is_nan_check)
        .group_by("parent")
        .agg(since=pl.col("start").min())
    )
    own = within.join(first, on="parent", maintain_order="left")
    own = own.filter(pl.col("start") >= pl.col("since")).drop("since")
    return filter_by_name(own, names.is_aten_operator)


def _finding(
    trace: Trace, statistics: StepStatistics, nan_check_operators: pl.DataFrame
) -> Finding:
    steps = counted_step_count(trace)
    frames = filter_by_name(slices_on(trace, "python"), names.formats_stack)
    stacks = covered_time(slices_in_counted_steps(trace, frames))
    time = union_of_interval_sets(covered_time(nan_check_operators), stacks)
    removed_waits = _changes_that_remove_host_waits(trace, time)
    changes = (*changes_shortening_intervals(trace, time, 0.0), *removed_waits)
    nan_checks = filter_by_name(nan_check_operators, names.is_nan_check)
    first = next(slices_by_line(trace, nan_checks), LineSlices.as_one_group(nan_checks))

    def ms_per_typical_step(times: Intervals) -> float:
        return statistics.scaled_to_typical_step(length(times) / steps / 1e6)

    stack_time = Evidence(
        "time to write Python stacks of operators, a step", ms_per_typical_step(stacks), "ms"
    )
    return Finding(
        covers=("F5", "B10") if removed_waits else ("F5",),
        title=(
            f"Anomaly detection checks {count_text(nan_checks.height / steps)} gradients a step "
            "for NaN"
        ),
        where=_anomaly_mode_location(trace, first),
        count_per_step=nan_checks.height / steps,
        claim=RemovalClaim(changes, noise_ms=statistics.noise_ms),
        confidence="high",
        evidence=(
            Evidence(
                "time in checks for NaN, a step",
                ms_per_typical_step(covered_time(nan_check_operators)),
                "ms",
                first.events(),
                nan_check_operators["id"].to_numpy(),
            ),
            *([stack_time] if stacks.starts.size else []),
        ),
        fix=Fix(
            "Switch anomaly detection off; the named line sets it or runs the pass that it checks.",
            DISABLE_ANOMALY_DETECTION_FIX_CODE,
            Argument("loop", "anomaly", "False"),
        ),
    )


def _anomaly_mode_location(trace: Trace, nan_checks: LineSlices) -> Where:
    """Returns the line that turns anomaly mode on; if unknown, a line that calls `backward`."""
    for function in ("set_detect_anomaly", "detect_anomaly"):
        line = line_of_only_call(trace, function)
        if line.file is not None:
            return line
    for means in (sets_anomaly_mode, calls_backward):
        frames = slices_in_counted_steps(trace, filter_by_name(slices_on(trace, "python"), means))
        if frames.height:
            return next(slices_by_line(trace, frames), nan_checks).where
    return nan_checks.where


def _changes_that_remove_host_waits(trace: Trace, removed_times: Intervals) -> list[Change]:
    """Returns simulated changes that remove the host's waits for the device in `removed_times`."""
    table = host_waits(trace)
    begin = table["start"].to_numpy()
    at = np.searchsorted(removed_times.starts, begin, side="right") - 1
    inside = (
        (at >= 0) & (begin < removed_times.ends[at]) if removed_times.starts.size else begin < 0
    )
    calls = table["id"].cast(pl.Int64).to_numpy()[inside]
    return [RemoveWaits(calls)] if calls.size else []
