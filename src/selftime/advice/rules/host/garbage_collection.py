"""Python's garbage collector stops the program in the middle of its steps.

## What it means
Python frees most objects when the last reference goes. Only cycles of references need the
collector, which looks through all objects that it tracks whenever enough were made; a call of
`gc.collect()` does so at once. The program waits meanwhile.

In the trace: the rows of Python's collector, which the profiler's option `record_python_gc_info`
adds.

## Why it costs
A full collection looks at every tracked object: a program that has imported PyTorch and a data set
has a million of them and more, and stands for 0.1 s and longer. In a distributed job the ranks stop
at different times, and each waits for every other.

## What to do
After the first steps call `gc.freeze()`: the collector then skips the objects that exist by then.
Or stop the collector and collect now and then, on all ranks in the same step. Remove a
`gc.collect()` of your own from the loop: it frees no memory of a device that a later allocation
could not use.

The estimate removes 95 % of the pauses from the mean step.

## Fires on
Collections in the steps.

    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    python 1 |    ggggg       ggggg       ggggg
    cpu 1    |         mmmm        mmmm        mmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    g = Python GC
    m = aten::mm

The program's own call.

    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    python 1 |    ggggg       ggggg       ggggg
    cpu 1    |         mmmm        mmmm        mmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    g = <built-in function collect>
    m = aten::mm

## Silent on
Short collections.

    column = 20 us
    mark 1   | sssssssssssssssssssssssssssstttttttttttttttttttttttttttt
    python 1 | g
    cpu 1    |   mmmmmmmmmmmmmmmmmmmmmmmmmm  mmmmmmmmmmmmmmmmmmmmmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    g = Python GC
    m = aten::mm

Collections while the device works on what it has.

    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    python 1 |    ggggg       ggggg       ggggg
    call 1   | k           k           k
    gpu 7    | kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    g = Python GC
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.replay import CutHostTime, replay_of
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
)
from selftime.advice.savings.claims import REPLAYED_SAVING_RANGE, ModelledClaim, SavingRange
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.analysis.steps.steady_steps import is_instant_in_windows, steps_with_counted_flags
from selftime.intervals import length
from selftime.trace import Trace
from selftime.units import time_text

REMAINING_COLLECTION_TIME_SHARE: Final = 0.05
"""Share of the garbage collector's time that remains after the fix, as it runs rarely then."""

FIX_CODE: Final = """import gc

gc.collect()
gc.freeze()                   # after the first steps
gc.disable()
for step, batch in enumerate(loader):
    ...
    if step % 100 == 0:       # on all ranks in the same step
        gc.collect(1)"""
"""Example code of the fix: exempt existing objects from collection, and collect every 100 steps."""

MISSING_DATA_MESSAGE: Final = (
    "events of Python's garbage collector: record with "
    "`experimental_config=torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)`"
)
"""What to record for this rule: without these events a garbage collection is not recognised."""


@rule(covers=("D6",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    steps = steps_with_counted_flags(trace)
    pauses = filter_by_name(trace.slices, names.is_garbage_collection)
    if step_stats is None or not (pauses.height or _were_collections_recorded(trace)):
        yield Unknown(MISSING_DATA_MESSAGE)
        return
    within = pl.Series(is_instant_in_windows(pauses["start"].to_numpy(), steps), dtype=pl.Boolean)
    pauses = pauses.filter(within & pl.col("duration").is_not_null())
    own = filter_by_name(pauses, names.is_explicit_garbage_collection)
    for collections in slices_by_line(trace, own):
        yield _finding(trace, collections, steps.height, is_explicit=True)
    inside_own = is_instant_in_windows(pauses["start"].to_numpy(), _merged_slice_windows(own))
    automatic = pauses.filter(~pl.Series(inside_own, dtype=pl.Boolean))
    if automatic.height:  # it may run wherever objects are made: its line means nothing
        collections = LineSlices(Where(), automatic)
        yield _finding(trace, collections, steps.height, is_explicit=False)
    if not pauses.height:
        yield Checked("no garbage collection ran within a recorded step", is_absent=True)


def _were_collections_recorded(trace: Trace) -> bool:
    """Returns whether the profiler was set to record garbage collections."""
    flags = trace.facts.get("flags")
    return isinstance(flags, Mapping) and flags.get("record_python_gc_info") is True


def _merged_slice_windows(slices: pl.DataFrame) -> pl.DataFrame:
    times = covered_time(slices)
    return pl.DataFrame({"start": times.starts, "end": times.ends})


def _collection_time_claim(trace: Trace, collections: LineSlices, step_count: int) -> ModelledClaim:
    """Returns a claim: the ms that a mean step saves if the garbage collector runs rarely.

    In the median step there may be no collection.

    Recording does not slow a collection, which runs no Python code.
    """
    replay = replay_of(trace)
    whole = replay.program_time() / step_count / 1e6
    lost = max(0.0, whole - replay.program_time(CutHostTime(collections.times)) / step_count / 1e6)
    return ModelledClaim(
        (1 - REMAINING_COLLECTION_TIME_SHARE) * lost,
        lost,
        changes=(CutHostTime(collections.times, REMAINING_COLLECTION_TIME_SHARE),),
        interval=SavingRange(REPLAYED_SAVING_RANGE.low, None),
        step_ms=whole,
        is_slowed=False,
    )


def _finding(
    trace: Trace, collections: LineSlices, step_count: int, *, is_explicit: bool
) -> Finding:
    count = collections.slices.height / step_count
    longest = max(collections.slices["duration"].to_list())
    who = "The program calls the garbage collector" if is_explicit else "Python collects garbage"
    return Finding(
        title=f"{who}, which stops the program for up to {time_text(longest)}",
        where=collections.where,
        count_per_step=count,
        claim=_collection_time_claim(trace, collections, step_count),
        confidence="high",
        evidence=(
            Evidence(
                "garbage collection per step, on average",
                _collection_ms_per_step(collections, step_count),
                "ms",
            ),
            Evidence(
                "the longest garbage collection",
                longest,
                "ms",
                collections.events(),
                np.asarray(collections.events(1)),
            ),
        ),
        fix=_fix_for_collections(is_explicit=is_explicit),
    )


def _collection_ms_per_step(collections: LineSlices, step_count: int) -> float:
    return length(collections.times) / step_count / 1e6


def _fix_for_collections(*, is_explicit: bool) -> Fix:
    if is_explicit:
        return Fix("Remove the call from the loop, or make it once in many steps.", FIX_CODE)
    return Fix(
        "Call `gc.freeze()` after the first steps, and collect once in many steps.", FIX_CODE
    )
