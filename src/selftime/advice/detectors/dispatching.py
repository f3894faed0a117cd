"""Steps that take as long as it takes to issue their work, because each piece of it is small.

On a device the host cannot launch kernels as fast as they run; on a CPU the dispatch of an operator
takes longer than its arithmetic. What a more specific cause explains is no part of it: loading,
collections, compilation, logging, optimizers, loops over elements, caches that are copied.
"""

from dataclasses import dataclass
from statistics import median
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.caches import growing_caches
from selftime.advice.detectors.counted_steps import both, is_during, regions_of, steps_counted
from selftime.advice.detectors.decoding import decoding
from selftime.advice.detectors.loops import element_loops
from selftime.advice.detectors.operators import outermost_operators
from selftime.advice.detectors.places import logging_frames
from selftime.advice.gate import inflation
from selftime.advice.replay import Cut, replay_of
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.steps.bound_by import regime
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.intervals import Intervals, length, subtract, union
from selftime.trace import Trace

SMALL_NS: Final = 12_000
"""An operator below this on a CPU is mostly dispatch, which takes 1 to 10 us."""

LARGE_NS: Final = 50_000
"""An operator beyond this on a CPU works: dispatch is at most a fifth of it."""

LARGE_SHARE: Final = 0.3
"""With this share of the step in large operators, dispatch is not what bounds it."""

LEAST_OPERATORS: Final = 60
"""Fewer operators a step are no crowd: about those of a network of a few layers."""

DISPATCHED: Final = ("dispatch", "python", "runtime", "optimizer")
"""Causes of idle time that mean: the host was busy issuing the next piece of work."""

OF_IDLE: Final = 0.5
"""At least this share of the idle time, or something else keeps the device waiting."""

LONG_GAP_NS: Final = 1_000_000
"""To issue one operator takes a fraction of this: a longer gap has a cause of its own."""

OPERATORS_OF_A_TOKEN: Final = 200
"""A token costs so many operators in a transformer of ten layers and more."""

FED: Final = 0.95
"""A device that is busy for this share of the step is what bounds it."""


@dataclass(frozen=True, slots=True)
class Dispatching:
    """What a step does to issue its work."""

    operators: pl.DataFrame
    """Operators that count to it, in order of time."""
    time: Intervals
    """Host time of the steps that goes into issuing work."""
    per_step: float
    """Operators of a step."""
    typical_ns: float
    """The median operator's host time."""
    is_bound: bool
    """Whether it bounds the step."""
    decodes: bool
    """Whether the steps are those of a language model that makes one token after the other."""
    on_device: bool


@cached_per_trace
def dispatching(trace: Trace) -> Dispatching:
    """What this trace's steps do to issue their work."""
    bounds = regime(trace)
    on_device = bounds not in {"host-only", None}
    explained = _explained(trace)
    every = outermost_operators(trace)
    ops = every.filter(~is_during(every, explained))
    windows = counted_windows(trace)
    step_time = union(windows["start"].to_numpy(), windows["end"].to_numpy())
    time = subtract(step_time, explained)
    if on_device:
        gaps = trace.view("idle", counted=True)
        is_bound = bounds == "launch-bound" and _is_issuing(gaps)
        time = subtract(time, _long(gaps))
        blocked = host_waits(trace)
        time = subtract(time, union(blocked["start"].to_numpy(), blocked["end"].to_numpy()))
    else:
        work, interrupted = _large(trace, ops)
        is_bound = length(work) < LARGE_SHARE * (length(step_time) - length(interrupted))
        time = subtract(subtract(time, work), interrupted)
    per_step = ops.height / steps_counted(trace)
    typical = float(median(ops["duration"].to_list())) if ops.height else 0.0
    crowd = per_step > LEAST_OPERATORS and (on_device or typical < SMALL_NS)
    decodes = per_step >= OPERATORS_OF_A_TOKEN and decoding(trace) is not None
    return Dispatching(ops, time, per_step, typical, is_bound and crowd, decodes, on_device)


def _explained(trace: Trace) -> Intervals:
    """Host time that has a cause of its own."""
    found = regions_of(
        trace,
        names.is_data_loading,
        names.is_garbage_collection,
        names.is_compilation,
        names.is_checkpoint,
        names.is_optimizer,
        names.formats_stack,
    )
    found = both(found, covered_time(logging_frames(trace)))
    for loop in element_loops(trace):
        found = both(found, loop.times)
    for cache in growing_caches(trace):
        found = both(found, cache.times)
    return found


def _large(trace: Trace, ops: pl.DataFrame) -> tuple[Intervals, Intervals]:
    """When large operators ran on a CPU; and when others did that the system interrupted.

    One that takes long now and then, and not as a rule on inputs of these sizes, is no large one:
    another process had its core.
    """
    told = with_arguments(trace, "op_args", ops, "input_shapes")
    usual = pl.col("duration").median().over("name", "input_shapes")
    long = told.with_columns(usual=usual).filter(pl.col("duration") > LARGE_NS)
    as_a_rule = pl.col("usual") > LARGE_NS
    return covered_time(long.filter(as_a_rule)), covered_time(long.filter(~as_a_rule))


def _is_issuing(gaps: pl.DataFrame) -> bool:
    """Whether the device stood idle because the host was issuing work, most of the time."""
    short = gaps.filter(pl.col("cause").is_in(DISPATCHED) & (pl.col("duration") <= LONG_GAP_NS))
    spent, idle = sum(short["duration"].to_list()), sum(gaps["duration"].to_list())
    return bool(spent >= OF_IDLE * idle)


def _long(gaps: pl.DataFrame) -> Intervals:
    long = gaps.filter(pl.col("duration") > LONG_GAP_NS)
    return covered_time(long)


def is_fed_unrecorded(trace: Trace, issue: Dispatching) -> bool:
    """Whether the device would bound the step of a host that writes down no stacks."""
    replay = replay_of(trace)
    window = replay.program_time()
    busy = 1 - length(replay.idle) / window if window else 0.0
    unrecorded = Cut(issue.time, 1 / inflation(trace))
    return busy * replay.step_time() >= FED * replay.step_time(unrecorded)
