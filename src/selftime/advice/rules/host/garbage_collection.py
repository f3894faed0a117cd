"""Python's garbage collector stops the program in the middle of its steps.

## What it means
Python frees most objects when the last reference goes. Only cycles of references need the
collector, which looks through all objects that it tracks whenever enough were made; a call of
`gc.collect()` does so at once. The program stands still meanwhile.

## Why it costs
A full collection looks at every tracked object: a program that has imported PyTorch and a data set
has a million of them and more, and stands for 0.1 s and longer. In a distributed job the ranks stop
at different times, and each waits for every other.

## What to do
After the first steps call `gc.freeze()`: what lives by then is never looked at again. Or stop the
collector and collect now and then, on all ranks in the same step. Remove a `gc.collect()` of your
own from the loop: it frees no memory of a device that a later allocation could not use.

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

import polars as pl

from selftime import names
from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Unknown,
    Where,
    rule,
)
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import ERROR
from selftime.advice.replay import Cut, replay_of
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.analysis.steps.steady_steps import assessed_steps, is_within
from selftime.intervals import length
from selftime.trace import Trace

KEPT: Final = 0.05
"""Of the pauses that stays: collecting once in tens of steps, or few objects at a time."""

CODE: Final = """import gc

gc.collect()
gc.freeze()                   # after the first steps
gc.disable()
for step, batch in enumerate(loader):
    ...
    if step % 100 == 0:       # on all ranks in the same step
        gc.collect(1)"""
"""Collect what there is, never look at it again, and what is new now and then."""

NEEDS: Final = (
    "rows of Python's garbage collector: record with "
    "`experimental_config=torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)`"
)
"""Without its rows, or a word in the facts, a collection looks like other work of Python."""


@rule(covers=("D6",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    steps = assessed_steps(trace)
    pauses = filter_by_name(trace.slices, names.is_garbage_collection)
    if limits is None or not (pauses.height or _were_recorded(trace)):
        yield Unknown(NEEDS)
        return
    within = pl.Series(is_within(pauses["start"].to_numpy(), steps), dtype=pl.Boolean)
    pauses = pauses.filter(within & pl.col("duration").is_not_null())
    own = filter_by_name(pauses, names.is_explicit_collection)
    for place in places(trace, own):
        yield limits.judge(_finding(trace, limits, place, steps.height, called=True))
    inside_own = is_within(pauses["start"].to_numpy(), _spans(own))
    automatic = pauses.filter(~pl.Series(inside_own, dtype=pl.Boolean))
    if automatic.height:  # it strikes wherever objects are made: its line says nothing
        place = Place(Where(), automatic)
        yield limits.judge(_finding(trace, limits, place, steps.height, called=False))
    if not pauses.height:
        yield Checked("no collection fell into a step", is_absent=True)


def _were_recorded(trace: Trace) -> bool:
    """Whether a recording without a row of the collector is one without a collection."""
    flags = trace.facts.get("flags")
    return isinstance(flags, Mapping) and flags.get("record_python_gc_info") is True


def _spans(slices: pl.DataFrame) -> pl.DataFrame:
    times = covered_time(slices)
    return pl.DataFrame({"start": times.starts, "end": times.ends})


def _saving(trace: Trace, limits: Gate, change: Cut, steps: int) -> Saving:
    """What steps save on average: a pause makes its step an outlier, left out of medians.

    So the step is the mean one. And no recorder slows a collection, which runs no code of Python:
    its time is that of a step that is not recorded, made longer as the gate expects it.
    """
    replay = replay_of(trace)
    whole = replay.program_time() / steps / 1e6
    left = min(replay.program_time(change) / steps / 1e6, whole)
    upper = limits.slowed * (whole - left)
    estimate = (1 - KEPT) * upper
    return Saving.of_step(
        left + upper,
        estimate,
        method="replay",
        low_ms=(1 - ERROR) * estimate,
        high_ms=upper,
        upper_ms=upper,
    )


def _finding(trace: Trace, limits: Gate, place: Place, steps: int, *, called: bool) -> Finding:
    count = place.slices.height / steps
    longest = max(place.slices["duration"].to_list()) / 1e6
    who = "The program calls the garbage collector" if called else "Python collects garbage"
    return Finding(
        title=f"{who}, and stands still for up to {longest:.1f} ms",
        where=place.where,
        count_per_step=count,
        saving=_saving(trace, limits, Cut(place.times), steps),
        confidence="high",
        evidence=(
            Evidence("collections in all steps, on average", _spent(place, steps), "ms"),
            Evidence("the longest", longest, "ms", place.events()),
        ),
        fix=_fix(called=called),
        changes=(Cut(place.times, KEPT),),
    )


def _spent(place: Place, steps: int) -> float:
    return length(place.times) / steps / 1e6


def _fix(*, called: bool) -> Fix:
    if called:
        return Fix("Remove the call from the loop, or make it once in many steps.", CODE)
    return Fix("Freeze what lives after the first steps, and collect once in many steps.", CODE)
