"""Autograd's anomaly detection is on.

## What it means
`torch.autograd.set_detect_anomaly(True)`, or the context of that name, was left in the program. It
looks for NaN in every gradient, and writes down the Python stack at every forward operator.

## Why it costs
Each check is four operators and reads the gradient once more; on a device the host waits for its
answer each time. Each stack takes 50 us and more. Measured on a small network on a CPU: the step
takes 2.5 times as long.

## What to do
Remove it. It is a tool to find where a NaN came from, for a few steps.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.detectors.changes import shortened
from selftime.advice.detectors.counted_steps import both, counted, gate_of, steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.lines.syntax import called
from selftime.advice.pricing import priced
from selftime.advice.replay import Change, Unwait
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, length
from selftime.names.tensors import calls_backward, sets_anomaly_mode
from selftime.trace import Trace

CODE: Final = """torch.autograd.set_detect_anomaly(False)"""
"""The default."""


@rule(covers=("F5", "B10"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    checks = _checks(trace)
    if limits is None or not filter_by_name(checks, names.is_nan_check).height:
        yield Checked("no node of the backward pass looks for NaN", is_absent=True)
        return
    own = gate_of(trace, limits, covered_time(checks))
    yield own.judge(_finding(trace, limits, checks))


def _checks(trace: Trace) -> pl.DataFrame:
    """What nodes of the backward pass run themselves after they have looked for NaN."""
    host = slices_on(trace, "host")
    if not filter_by_name(host, names.is_nan_check).height:
        return host.clear()
    nodes = filter_by_name(trace.slices, names.is_backward_node)["id"]
    within = counted(trace, host.filter(pl.col("parent").is_in(nodes.implode())))
    first = (
        filter_by_name(within, names.is_nan_check)
        .group_by("parent")
        .agg(since=pl.col("start").min())
    )
    own = within.join(first, on="parent", maintain_order="left")
    own = own.filter(pl.col("start") >= pl.col("since")).drop("since")
    return filter_by_name(own, names.is_library_operator)


def _finding(trace: Trace, limits: Gate, checks: pl.DataFrame) -> Finding:
    steps = steps_counted(trace)
    frames = filter_by_name(slices_on(trace, "python"), names.formats_stack)
    stacks = covered_time(counted(trace, frames))
    time = both(covered_time(checks), stacks)
    freed = _freed(trace, time)
    changes = (*shortened(trace, time, 0.0), *freed)
    nans = filter_by_name(checks, names.is_nan_check)
    first = next(places(trace, nans), Place.of(nans))

    def spent(times: Intervals) -> float:
        return limits.typical(length(times) / steps / 1e6)

    seen = Evidence("writing stacks of operators", spent(stacks), "ms")
    return Finding(
        covers=("F5", "B10") if freed else ("F5",),
        title=f"Anomaly detection checks {nans.height / steps:.0f} gradients a step for NaN",
        where=_switched_on(trace, first),
        count_per_step=nans.height / steps,
        saving=priced(trace, limits, *changes),
        confidence="high",
        evidence=(
            Evidence("checks for NaN", spent(covered_time(checks)), "ms", first.events()),
            *([seen] if stacks.starts.size else []),
        ),
        fix=Fix(
            "Switch anomaly detection off; the line is where it is on, or the pass that it checks.",
            CODE,
        ),
        changes=changes,
    )


def _switched_on(trace: Trace, checks: Place) -> Where:
    """Where the mode is set: by the source, else by frames; else where the backward pass begins."""
    for function in ("set_detect_anomaly", "detect_anomaly"):
        line = called(trace, function)
        if line.file is not None:
            return line
    for means in (sets_anomaly_mode, calls_backward):
        frames = counted(trace, filter_by_name(slices_on(trace, "python"), means))
        if frames.height:
            return next(places(trace, frames), checks).where
    return checks.where


def _freed(trace: Trace, time: Intervals) -> list[Change]:
    """The waits for the answers of the checks."""
    table = host_waits(trace)
    begin = table["start"].to_numpy()
    at = np.searchsorted(time.starts, begin, side="right") - 1
    inside = (at >= 0) & (begin < time.ends[at]) if time.starts.size else begin < 0
    calls = table["id"].cast(pl.Int64).to_numpy()[inside]
    return [Unwait(calls)] if calls.size else []
