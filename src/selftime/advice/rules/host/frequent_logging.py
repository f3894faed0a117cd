"""Each step prints, logs or draws a progress bar.

## What it means
The trace has Python frames of `print`, `logging`, `tqdm`, `wandb`, TensorBoard, or of the
formatting of tensors within the steps, and the step waits for them.

## Why it costs
A line of text costs 10 us to some ms; a tensor that is formatted costs dozens of operators, and on
a device a wait for its values. A mean over a list of all losses so far costs more in every step.

## What to do
Log once in many steps, and keep sums on the device until then. Give `tqdm` a `mininterval`.

The estimate leaves 2 % of the time of these frames: a log in one of fifty steps.

## Fires on
A program that prints in each step.

    column = 100 us
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    python 1 | ffffffffffffffffffffffffffffffffffff
    python 1 |         ppp         ppp         ppp
    cpu 1    | mmmmmmm     mmmmmmm     mmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = train.py(3): main
    p = <built-in function print>
    m = aten::mm

## Silent on
A program that prints quickly.

    column = 100 us
    mark 1   | ssssssssssssssssssssssssssssssssssssttttttttttttttttttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
    cpu 1    | mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = train.py(3): main
    m = aten::mm

Printing while the device works on what it has.

    column = 100 us
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    python 1 | ffffffffffffffffffffffffffffffffffff
    python 1 |         ppp         ppp         ppp
    call 1   | k           k           k
    gpu 7    | kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = train.py(3): main
    p = <built-in function print>
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    significance_limits_for_cause,
    slices_in_counted_steps,
    times_of_slices_named,
)
from selftime.advice.detectors.source_lines import LineSlices, logging_frames, slices_by_line
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Argument, Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace
from selftime.units import count_text

REMAINING_LOGGING_TIME_SHARE: Final = 0.02
"""Share of the logging time that remains if the program logs in one of fifty steps."""

FIX_CODE: Final = """if step % 50 == 0:
    print(f"step {step}: {loss.item():.3f}")"""
"""Example code of the fix: log in one of fifty steps."""


@rule(covers=("D5", "B3"), needs=("stacks",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    frames = _logging_frames_in_steps(trace)
    if step_stats is None or not frames.height:
        yield Checked("no recorded step prints or logs", is_absent=True)
        return
    for logging_calls in slices_by_line(trace, frames):
        own = significance_limits_for_cause(trace, step_stats, logging_calls.times)
        yield _finding(trace, own, logging_calls)


def _logging_frames_in_steps(trace: Trace) -> pl.DataFrame:
    """Returns the outermost Python frames that log within the measured steps.

    Those that contain data loading, such as a progress bar around the loader, are left out.
    """
    every = logging_frames(trace)
    logs = np.zeros(trace.slices.height, bool)
    logs[every["id"].to_numpy()] = True
    parent = every["parent"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    within = nearest_ancestor(parent_of_every_slice(trace), logs, parent) != NO_SLICE
    own = slices_in_counted_steps(trace, every.filter(~pl.Series(within, dtype=pl.Boolean)))
    loading = times_of_slices_named(trace, names.is_data_loading, names.is_next_batch_frame)
    begun = np.searchsorted(loading.starts, own["start"].to_numpy())
    ended = np.searchsorted(loading.starts, (own["start"] + own["duration"]).to_numpy())
    spans = pl.Series(begun != ended, dtype=pl.Boolean)
    return own.filter(~spans & ~begins_during_intervals(own, loading))


def _do_calls_format_tensors(trace: Trace, logging_calls: LineSlices) -> bool:
    """Returns whether any logging call formats a tensor's values, for which the host waits."""
    written = filter_by_name(logging_frames(trace), names.formats_tensor)["start"].sort().to_numpy()
    begin, last = (
        logging_calls.slices["start"].to_numpy(),
        logging_calls.slices["duration"].to_numpy(),
    )
    return bool((np.searchsorted(written, begin) < np.searchsorted(written, begin + last)).any())


def _finding(trace: Trace, step_stats: StepStatistics, logging_calls: LineSlices) -> Finding:
    steps = counted_step_count(trace)
    count = logging_calls.slices.height / steps
    change = CutHostTime(logging_calls.times, REMAINING_LOGGING_TIME_SHARE)
    spent = step_stats.scaled_to_typical_step(length(logging_calls.times) / steps / 1e6)
    total = logging_calls.slices.group_by("name", maintain_order=True).agg(pl.col("duration").sum())
    most: str = total.sort("duration", descending=True)["name"].cast(pl.String)[0]
    often = "once" if round(count) == 1 else f"{count_text(count)} times"
    return Finding(
        covers=("B3",) if _do_calls_format_tensors(trace, logging_calls) else ("D5",),
        title=f"The step logs {often}, with `{names.without_object_address(most)}`",
        where=logging_calls.where,
        count_per_step=count,
        claim=RemovalClaim(
            (change,),
            largest_changes=(CutHostTime(logging_calls.times),),
            noise_ms=step_stats.noise_ms,
        ),
        confidence="high",
        evidence=(
            Evidence(
                "host time of logging", spent, "ms", logging_calls.events(), logging_calls.ids
            ),
        ),
        fix=Fix("Log once in many steps.", FIX_CODE, Argument("loop", "log_interval", "50")),
    )
