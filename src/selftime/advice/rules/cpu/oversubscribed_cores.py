"""More threads share the work of operators than there are cores for them.

## What it means
PyTorch cuts a large operator into as many parts as it has threads, in every process and in every
thread that calls operators by itself, as threads of a server do. Together they are more than the
cores available: those of the machine, of the affinity, or of the container's quota, which
PyTorch does not look at.

That memory is of another processor's node is not visible in a trace; `numactl --hardware` tells.

## Why it costs
An operator is done when its slowest part is. A part that waits for a core holds up all others, and
threads that wait spin, which takes the core that the slow one needs. Measured on two cores, one of
which another program took: a step of 15 to 20 ms with one thread took 30 to 50 ms with two, and 750
ms where the other program had the higher priority.

## What to do
Give each process its share: cores by processes, and by the threads of it that call operators.
`torchrun` sets one thread unless `OMP_NUM_THREADS` says more.

## Fires on
Eight threads on two cores.

    column = 1 ms
    facts = {"threads": 8, "cores": {"effective": 2, "logical": 2, "affinity": 2}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::relu

Four processes with four threads each on four cores.

    column = 1 ms
    facts = {"threads": 4, "cores": {"effective": 4, "logical": 4, "affinity": 4}, "settings": {"environment": {"LOCAL_WORLD_SIZE": "4"}}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::relu

A server's threads, each of which has as many threads as there are cores.

    column = 1 ms
    facts = {"threads": 4, "cores": {"effective": 4, "logical": 4, "affinity": 4}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    cpu 2  | bbbbaaaaa bbbbaaaaa bbbbaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::relu

As many threads as cores, one of which another program takes, so that equal operators take now 1 ms
and now 8 ms.

    column = 1 ms
    facts = {"threads": 2, "cores": {"effective": 2, "logical": 2, "affinity": 2}, "usage": {"wall_s": 1.0, "process_s": 0.9, "workers": {"count": 0, "cpu_s": 0}, "busy": 1.0, "steal": 0}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb abaaaaaaaa abaaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::relu

## Silent on
As many threads as cores.

    column = 1 ms
    facts = {"threads": 4, "cores": {"effective": 4, "logical": 4, "affinity": 4}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::relu

Operators so small that one thread does each of them.

    column = 10 us
    facts = {"threads": 8, "cores": {"effective": 2, "logical": 2, "affinity": 2}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ababababa ababababa ababababa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::relu

A device that does the work.

    column = 1 ms
    facts = {"threads": 8, "cores": {"effective": 2, "logical": 2, "affinity": 2}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    call 1 | a   b     a   b     a   b
    gpu 7  |  aaabbbbb  aaabbbbb  aaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::relu
"""  # noqa: E501 - facts are on one line

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import (
    Checked,
    Confidence,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Unknown,
    rule,
)
from selftime.advice.detectors import recorded_facts
from selftime.advice.detectors.counted_steps import steps_counted
from selftime.advice.detectors.operators import outermost_operators
from selftime.advice.gate import Gate, gate
from selftime.advice.lines.syntax import called
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.intervals import length
from selftime.trace import Trace

CROWDED: Final = 1.25
"""Threads by cores: below it a part waits for a moment only, as other programs make it wait too."""

SHARED_NS: Final = 50_000
"""An operator beyond this works on more than a thread's share, which takes about 10 us."""

LEAST_SHARE: Final = 0.2
"""Of the step in such operators: with less, what their threads wait for is no cost of the step."""

HELD: Final = 0.1
"""Of the time of such operators in which so many threads must call them at once to count."""

WAITED: Final = 0.6
"""Of the time of large operators, beyond their quickest runs. A part that waits until another has
done its own doubles the time; threads that spin for a core of another program take longer."""

LEAST_RUNS: Final = 3
"""Of equal operators, to say what the quickest takes."""

SLICE_NS: Final = 3_000_000
"""A system lets a thread run for about so long before another gets its core. An operator that takes
longer meets others in every run: even its quickest has waited, and tells nothing."""

CODE: Final = """torch.set_num_threads({threads})  # at the start; or OMP_NUM_THREADS={threads}"""
"""The call that sets the number."""


@rule(covers=("J1", "J2"), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, threads, cores = gate(trace), recorded_facts.threads(trace), recorded_facts.cores(trace)
    if limits is None or trace.device_args.height:
        yield Checked("the step's work is not done by threads of the CPU", is_absent=True)
    elif threads is None or cores is None:
        yield Unknown("how many threads and cores there are: record with `selftime.profile`")
    else:
        yield _judged(trace, limits, threads, cores)


def _judged(trace: Trace, limits: Gate, threads: int, cores: float) -> Outcome:
    large = _large(trace)
    spent = limits.typical(length(covered_time(large)) / steps_counted(trace) / 1e6)
    if spent < LEAST_SHARE * limits.step_ms or threads == 1:
        return Checked("hardly any operator of the step is shared among threads", is_absent=True)
    callers, ranks = _callers(large), recorded_facts.local_ranks(trace)
    others = recorded_facts.others(trace) or 0.0
    own, free = threads * callers, max(cores - others, 0.0)
    if _is_crowded(own * ranks, cores, cores):
        crowd = _Crowd(threads, callers, ranks, cores)
    elif _is_crowded(own, free, round(free)) and _waited(trace, large) >= WAITED:
        crowd = _Crowd(threads, callers, 1, free, others)
    else:
        return Checked(f"{own * ranks} threads have {cores:g} cores")
    return _finding(trace, crowd, Evidence("shared operators", spent, "ms", _longest(large)))


@dataclass(frozen=True, slots=True)
class _Crowd:
    """Who shares how many cores."""

    threads: int
    """Of each caller."""
    callers: int
    """Threads of a process that call operators at the same time."""
    ranks: int
    cores: float
    others: float = 0.0
    """Cores that other programs took, if these are what is missing."""

    @property
    def wanted(self) -> int:
        return self.threads * self.callers * self.ranks

    @property
    def each(self) -> int:
        """Threads for each caller that fit."""
        return max(int(self.cores / self.callers / self.ranks), 1)

    @property
    def confidence(self) -> Confidence:
        """Low where others crowd the cores: the next run may have them all."""
        if self.others:
            return "low"
        return "high" if self.wanted >= 2 * self.cores else "medium"

    def __str__(self) -> str:
        who = [f"{self.ranks} processes"] if self.ranks > 1 else []
        who += [f"{self.callers} calling threads"] if self.callers > 1 else []
        whose = f" of each of {' with '.join(who)}" if who else ""
        if self.others:
            every = self.cores + self.others
            taken = f"other programs use {self.others:.1f} of the {every:.3g} cores"
            return f"{self.threads} threads{whose} lack cores: {taken}"
        return f"{self.threads} threads{whose} share {self.cores:.3g} cores"


def _is_crowded(wanted: int, cores: float, whole: float) -> bool:
    """Whether there is at least one thread more than cores, and more than others make wait.

    What others left is measured: a core that they took whole is not missed by a thousandth of it.
    """
    return wanted > CROWDED * cores and wanted >= whole + 1


def _finding(trace: Trace, crowd: _Crowd, shared: Evidence) -> Finding:
    taken = Evidence("cores used by other programs", crowd.others, "count")
    return Finding(
        covers=("J2",) if crowd.callers > 1 else ("J1",),
        title=str(crowd),
        where=called(trace, "set_num_threads"),
        saving=Saving(),
        confidence=crowd.confidence,
        evidence=(
            Evidence("threads that run operators", float(crowd.wanted), "count"),
            Evidence("cores available", crowd.cores, "count"),
            shared,
            *([taken] if crowd.others else []),
        ),
        fix=Fix(
            "Use no more threads than there are cores; measure one or two fewer as well.",
            CODE.format(threads=crowd.each),
        ),
    )


def _waited(trace: Trace, large: pl.DataFrame) -> float:
    """Of the time of equal large operators, the share beyond the quickest of them.

    Of all that have equals, or of those that fit into a slice, where these are a good part of all.
    """
    equal = (
        with_arguments(trace, "op_args", large, "input_shapes")
        .with_columns(pl.col("input_shapes").cast(pl.String))
        .group_by("name", "input_shapes")
        .agg(runs=pl.len(), all=pl.col("duration").sum(), least=pl.col("duration").min())
        .filter(pl.col("runs") >= LEAST_RUNS)
    )
    short = equal.filter(pl.col("least") < SLICE_NS)
    least: float = LEAST_SHARE * sum(large["duration"].to_list())
    return max(_beyond(equal, least), _beyond(short, least))


def _beyond(equal: pl.DataFrame, least: float) -> float:
    """The share beyond the quickest; none where these take less time than would count."""
    spent: int = sum(equal["all"].to_list())
    quick: int = sum((equal["runs"].cast(pl.Int64) * equal["least"]).to_list())
    return 1 - quick / spent if spent and spent >= least else 0.0


def _large(trace: Trace) -> pl.DataFrame:
    """Operators of the counted steps that are large enough to be shared among threads."""
    large = outermost_operators(trace).filter(pl.col("duration") >= SHARED_NS)
    return filter_by_name(large, names.is_library_operator)


def _callers(large: pl.DataFrame) -> int:
    """How many threads call large operators at the same time, for a good part of that time."""
    if not large.height:
        return 1
    begin = large["start"].to_numpy()
    end = begin + large["duration"].to_numpy()
    when = np.concatenate([begin, end])
    change = np.concatenate([np.ones(begin.size, np.int64), -np.ones(end.size, np.int64)])
    order = np.lexsort((change, when))
    open_, passed = np.cumsum(change[order])[:-1], np.diff(when[order])
    total = int(passed[open_ > 0].sum())
    level = 1
    while int(passed[open_ > level].sum()) >= max(HELD * total, 1):
        level += 1
    return level


def _longest(large: pl.DataFrame) -> tuple[int, ...]:
    longest = large.sort("duration", "id", descending=[True, False]).head(3)
    return tuple(longest["id"].to_list())
