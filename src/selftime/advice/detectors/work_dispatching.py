"""Finds steps whose time depends on how fast the host issues many small operators or kernels.

On a device the host cannot launch kernels as fast as they run; on a CPU the dispatch of an operator
takes longer than its arithmetic. What a more specific cause explains is no part of it: loading,
collections, compilation, logging, optimizers, loops over elements, caches that are copied.
"""

from dataclasses import dataclass
from statistics import median
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    times_of_slices_named,
    union_of_interval_sets,
)
from selftime.advice.detectors.growing_tensors import growing_tensor_lines
from selftime.advice.detectors.python_loops import tensor_element_loops
from selftime.advice.detectors.source_lines import logging_frames
from selftime.advice.detectors.token_decoding import token_decoding_of
from selftime.advice.replay import CutHostTime, replay_of
from selftime.advice.rule_outcomes import Evidence
from selftime.advice.step_statistics import assumed_recording_slowdown
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.steps.bound_by import step_bound_by
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.intervals import Intervals, length, subtract, union
from selftime.trace import Trace

SMALL_OPERATOR_NS: Final = 12_000
"""Duration in ns below which an operator on a CPU is mostly dispatch, which takes 1 to 10 us."""

LARGE_OPERATOR_NS: Final = 50_000
"""Duration in ns above which a CPU operator is mostly computation: dispatch is at most a fifth."""

MAX_STEP_SHARE_IN_LARGE_OPERATORS: Final = 0.3
"""Share of the step in large operators above which dispatch does not limit the step."""

MIN_OPERATORS_PER_DISPATCH_BOUND_STEP: Final = 60
"""Smallest number of operators per step for dispatch to limit it: a network of a few layers."""

IDLE_CAUSES_FROM_ISSUING_WORK: Final = ("dispatch", "python", "runtime", "optimizer")
"""Causes of device idle time, as in the view `idle`, in which the host was busy issuing work."""

MIN_IDLE_SHARE_FROM_ISSUING_WORK: Final = 0.5
"""Smallest share of the device's idle time, with the host busy issuing work, for that to be the
limit."""

MIN_LONG_DEVICE_GAP_NS: Final = 1_000_000
"""Duration in ns above which idle time of the device has another cause than the issue of one
operator."""

MIN_LONG_HOST_GAP_NS: Final = 300_000
"""Duration in ns above which time of the host without an operator has another cause than the issue
of one, which takes some 10 us of Python, and several times that while stacks are recorded."""

MIN_OPERATORS_PER_TOKEN: Final = 200
"""Smallest number of operators per step that decodes a token: a transformer of ten layers."""

MIN_BUSY_SHARE_OF_DEVICE_BOUND_STEP: Final = 0.95
"""Share of the step with a busy device from which the device is what limits the step."""


@dataclass(frozen=True, slots=True)
class DispatchAnalysis:
    """How the host issues operators and kernels in the steps, and whether that limits the steps."""

    operators: pl.DataFrame
    """Issued operators in order of time."""
    dispatch_times: Intervals
    """Intervals of host time that the steps spend on issuing work."""
    operators_per_step: float
    """Number of issued operators per step."""
    median_operator_ns: float
    """Median host time of an issued operator, in ns."""
    is_dispatch_bound: bool
    """Whether the issue of work on the host limits the step time."""
    is_token_decoding: bool
    """Whether the steps decode a language model's tokens one by one."""
    on_device: bool
    """Whether the operators launch work on a device."""

    def evidence(self, spent_ms: float, events: tuple[int, ...]) -> tuple[Evidence, Evidence]:
        """Returns the host time (ms a step) to issue the operators, and their number a step."""
        every = self.operators["id"].to_numpy()
        return (
            Evidence("host time to issue work", spent_ms, "ms", events, every),
            Evidence("operators a step", self.operators_per_step, "count", (), every),
        )


@cached_per_trace
def dispatch_analysis_of(trace: Trace) -> DispatchAnalysis:
    """Returns how the host issues operators and kernels, and whether that limits the steps."""
    bounds = step_bound_by(trace)
    on_device = bounds not in {"host-only", None}
    explained = _host_times_with_other_cause(trace)
    every = outermost_operators(trace)
    ops = every.filter(~begins_during_intervals(every, explained))
    windows = counted_step_windows(trace)
    step_time = union(windows["start"].to_numpy(), windows["end"].to_numpy())
    time = subtract(step_time, explained)
    if on_device:
        gaps = trace.view("idle", counted=True)
        is_bound = bounds == "launch-bound" and _is_idle_mostly_from_issuing(gaps)
        time = subtract(time, _long_gap_times(gaps))
        blocked = host_waits(trace)
        time = subtract(time, union(blocked["start"].to_numpy(), blocked["end"].to_numpy()))
    else:
        large, interrupted = _large_and_interrupted_operator_times(trace, ops)
        work = union_of_interval_sets(large, _long_times_without_operators(time, every))
        is_bound = length(work) < MAX_STEP_SHARE_IN_LARGE_OPERATORS * (
            length(step_time) - length(interrupted)
        )
        time = subtract(subtract(time, work), interrupted)
    per_step = ops.height / counted_step_count(trace)
    typical = float(median(ops["duration"].to_list())) if ops.height else 0.0
    crowd = per_step > MIN_OPERATORS_PER_DISPATCH_BOUND_STEP and (
        on_device or typical < SMALL_OPERATOR_NS
    )
    decodes = per_step >= MIN_OPERATORS_PER_TOKEN and token_decoding_of(trace) is not None
    return DispatchAnalysis(ops, time, per_step, typical, is_bound and crowd, decodes, on_device)


def _host_times_with_other_cause(trace: Trace) -> Intervals:
    """Returns the host intervals that have a purpose other than issuing work, as data loading."""
    found = times_of_slices_named(
        trace,
        names.is_data_loading,
        names.is_garbage_collection,
        names.is_compilation,
        names.is_checkpoint_frame,
        names.is_optimizer_annotation,
        names.formats_stack,
    )
    found = union_of_interval_sets(found, covered_time(logging_frames(trace)))
    for loop in tensor_element_loops(trace):
        found = union_of_interval_sets(found, loop.times)
    for cache in growing_tensor_lines(trace):
        found = union_of_interval_sets(found, cache.times)
    return found


def _large_and_interrupted_operator_times(
    trace: Trace, operators: pl.DataFrame
) -> tuple[Intervals, Intervals]:
    """Returns the intervals of large CPU operators, and those of operators that were interrupted.

    An operator that takes long, but usually not on inputs of these sizes, was interrupted: another
    process had its core.
    """
    told = slices_with_arguments(trace, "op_args", operators, "input_shapes")
    usual = pl.col("duration").median().over("name", "input_shapes")
    long = told.with_columns(usual=usual).filter(pl.col("duration") > LARGE_OPERATOR_NS)
    as_a_rule = pl.col("usual") > LARGE_OPERATOR_NS
    return covered_time(long.filter(as_a_rule)), covered_time(long.filter(~as_a_rule))


def _long_times_without_operators(times: Intervals, operators: pl.DataFrame) -> Intervals:
    """Returns the parts of `times` in which the host does for long something else than operators.

    Such as a solver that is no part of torch, or Python that computes.
    """
    free = subtract(times, covered_time(operators))
    is_long = free.ends - free.starts > MIN_LONG_HOST_GAP_NS
    return union(free.starts[is_long], free.ends[is_long])


def _is_idle_mostly_from_issuing(gaps: pl.DataFrame) -> bool:
    """Returns whether the host was issuing work in at least half of the device's idle time."""
    short = gaps.filter(
        pl.col("cause").is_in(IDLE_CAUSES_FROM_ISSUING_WORK)
        & (pl.col("duration") <= MIN_LONG_DEVICE_GAP_NS)
    )
    spent, idle = sum(short["duration"].to_list()), sum(gaps["duration"].to_list())
    return bool(spent >= MIN_IDLE_SHARE_FROM_ISSUING_WORK * idle)


def _long_gap_times(gaps: pl.DataFrame) -> Intervals:
    """Returns the intervals longer than 1 ms in which the device was idle."""
    long = gaps.filter(pl.col("duration") > MIN_LONG_DEVICE_GAP_NS)
    return covered_time(long)


def is_device_bound_without_recording(trace: Trace, dispatching: DispatchAnalysis) -> bool:
    """Returns whether the device, not the host, would limit the step without a profiler."""
    replay = replay_of(trace)
    window = replay.program_time()
    busy = 1 - length(replay.idle) / window if window else 0.0
    unrecorded = CutHostTime(dispatching.dispatch_times, 1 / assumed_recording_slowdown(trace))
    return busy * replay.step_time() >= MIN_BUSY_SHARE_OF_DEVICE_BOUND_STEP * replay.step_time(
        unrecorded
    )
