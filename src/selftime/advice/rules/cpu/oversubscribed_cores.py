"""Operators split their work among more threads than there are cores.

## What it means
PyTorch cuts a large operator into as many parts as it has threads, in every process and in every
thread that calls operators by itself, as threads of a server do. Together they are more than the
cores available: those of the machine, of the affinity, or of the container's quota, which
PyTorch does not look at, less those that the program's DataLoader workers and other programs use.

A trace does not show memory on another processor's node; `numactl --hardware` does.

In the trace: operators above 50 us take a fifth of the step or more. The numbers of threads,
processes and cores are facts of a recording by selftime.

## Why it costs
An operator is done when its slowest part is. A part that waits for a core holds up all others, and
threads that wait spin, which takes the core that the slow one needs. Measured on two cores, one of
which another program took: a step of 15 to 20 ms with one thread took 30 to 50 ms with two, and 750
ms where the other program had the higher priority.

## What to do
Give each process its share: cores by processes, and by the threads of it that call operators.
`torchrun` sets one thread unless `OMP_NUM_THREADS` says more.

No saving is estimated.

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

As many threads as cores, one of which another program uses: equal operators take sometimes 1 ms and
sometimes 8 ms.

    column = 1 ms
    facts = {"threads": 2, "cores": {"effective": 2, "logical": 2, "affinity": 2}, "usage": {"wall_s": 1.0, "process_s": 0.9, "workers": {"count": 0, "cpu_s": 0}, "busy": 1.0, "steal": 0}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb abaaaaaaaa abaaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::relu

The same where the program's own DataLoader workers use a core.

    column = 1 ms
    facts = {"threads": 2, "cores": {"effective": 2, "logical": 2, "affinity": 2}, "usage": {"wall_s": 1.0, "process_s": 1.1, "workers": {"count": 1, "cpu_s": 0.9}, "busy": 1.0, "steal": 0}}
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
from selftime.advice.detectors import recorded_facts
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.lines.source_syntax import line_of_only_call
from selftime.advice.rule_definition import (
    Checked,
    Confidence,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
)
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.recorded_cores import cores_used_by_others, usable_cores
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.intervals import length
from selftime.trace import Trace
from selftime.units import tenths_text

MAX_THREADS_PER_CORE: Final = 1.25
"""Ratio of threads to cores above which threads wait for cores noticeably."""

MIN_MULTITHREADED_OPERATOR_NS: Final = 50_000
"""Shortest operator, in ns, that counts as split among threads; a thread's share takes about 10
us."""

MIN_MULTITHREADED_SHARE_OF_STEP: Final = 0.2
"""Smallest share of the step in operators that use several threads to report."""

MIN_TIME_SHARE_WITH_CONCURRENT_CALLERS: Final = 0.1
"""Smallest share of multithreaded operators' time, with several threads calling operators at once,
for these threads to count as concurrent."""

MIN_SHARE_OF_TIME_WAITING_FOR_CORES: Final = 0.6
"""Smallest share of multithreaded operators' time beyond that of their quickest runs to report."""

MIN_RUNS_OF_EQUAL_OPERATORS: Final = 3
"""Smallest number of equal operators of which the quickest counts as one without waiting."""

SCHEDULER_TIME_SLICE_NS: Final = 3_000_000
"""Time in ns that the system lets a thread run before another thread gets its core, about. In
operators that take longer, even the quickest run has waited for a core."""

_LEAST_TOLD_CORES: Final = 0.05
"""Smallest number of cores in use that is told: less is written as 0.0."""

SET_THREAD_COUNT_FIX_CODE: Final = (
    """torch.set_num_threads({threads})  # or OMP_NUM_THREADS={threads}"""
)
"""Example code of the fix: the call that sets the number of threads."""


@rule(covers=("J1", "J2"), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, threads, cores = (
        step_statistics(trace),
        recorded_facts.intra_op_thread_count(trace),
        usable_cores(trace),
    )
    if limits is None or trace.device_args.height:
        yield Checked("the step's work does not run on threads of the CPU", is_absent=True)
    elif threads is None or cores is None:
        yield Unknown("how many threads and cores there are: record with `selftime.profile`")
    else:
        yield _oversubscription_outcome(trace, limits, threads, cores)


def _oversubscription_outcome(
    trace: Trace, statistics: StepStatistics, thread_count: int, core_count: float
) -> Outcome:
    operators = _multithreaded_operators(trace)
    spent = statistics.scaled_to_typical_step(
        length(covered_time(operators)) / counted_step_count(trace) / 1e6
    )
    if spent < MIN_MULTITHREADED_SHARE_OF_STEP * statistics.step_ms or thread_count == 1:
        return Checked("hardly any operator of the step is split among threads", is_absent=True)
    caller_count, rank_count = (
        _count_concurrent_calling_threads(operators),
        recorded_facts.local_rank_count(trace),
    )
    other_load = cores_used_by_others(trace) or 0.0
    worker_load = recorded_facts.cores_used_by_workers(trace) or 0.0
    own_threads = thread_count * caller_count
    free_cores = max(core_count - other_load - worker_load, 0.0)
    if _are_threads_too_many_for_cores(own_threads * rank_count, core_count, core_count):
        demand = _ThreadDemand(thread_count, caller_count, rank_count, core_count)
    elif (
        _are_threads_too_many_for_cores(own_threads, free_cores, round(free_cores))
        and _share_of_time_waiting_for_cores(trace, operators)
        >= MIN_SHARE_OF_TIME_WAITING_FOR_CORES
    ):
        demand = _ThreadDemand(thread_count, caller_count, 1, free_cores, other_load, worker_load)
    else:
        return Checked(f"{own_threads * rank_count} threads have {tenths_text(core_count)} cores")
    return _finding(
        trace,
        demand,
        Evidence(
            "time in operators split among threads", spent, "ms", _longest_operator_ids(operators)
        ),
    )


@dataclass(frozen=True, slots=True)
class _ThreadDemand:
    """Number of threads that run operators, and number of cores that are available to them."""

    threads: int
    """Number of threads among which each calling thread splits an operator."""
    callers: int
    """Number of threads of the process that call operators at the same time."""
    ranks: int
    """Number of processes of the job that share the machine's cores."""
    cores: float
    """Number of CPU cores available to all these threads."""
    others_cores: float = 0.0
    """Number of CPU cores that other programs used; 0 if the threads have enough cores."""
    workers_cores: float = 0.0
    """Number of CPU cores that the program's DataLoader workers used, likewise."""

    @property
    def users(self) -> tuple[tuple[str, float], ...]:
        """Returns who else uses cores, and how many."""
        return ("other programs", self.others_cores), ("DataLoader workers", self.workers_cores)

    @property
    def total_thread_count(self) -> int:
        return self.threads * self.callers * self.ranks

    @property
    def fitting_threads_per_caller(self) -> int:
        """Largest number of threads per calling thread for which the cores suffice; at least 1."""
        return max(int(self.cores / self.callers / self.ranks), 1)

    @property
    def confidence(self) -> Confidence:
        """The finding's confidence: low if other programs use most of the cores that are taken.

        The next run may have these cores.
        """
        if self.others_cores > self.workers_cores:
            return "low"
        if self.workers_cores:
            return "medium"
        return "high" if self.total_thread_count >= 2 * self.cores else "medium"

    def __str__(self) -> str:
        groups = [f"{self.ranks} processes"] if self.ranks > 1 else []
        groups += [f"{self.callers} calling threads"] if self.callers > 1 else []
        threads = f"{self.threads} threads"
        if groups:
            threads = f"{self.threads} threads of each of {' with '.join(groups)}"
        if self.others_cores or self.workers_cores:
            every = self.cores + self.others_cores + self.workers_cores
            told = [(who, used) for who, used in self.users if used >= _LEAST_TOLD_CORES]
            users = [f"{who} use {tenths_text(used)}" for who, used in told]
            return f"{threads} lack cores: {' and '.join(users)} of the {tenths_text(every)} cores"
        return f"{threads} share {tenths_text(self.cores)} cores"


def _are_threads_too_many_for_cores(
    thread_count: int, core_count: float, rounded_core_count: float
) -> bool:
    """Returns whether threads outnumber cores, by 1 or more and by factor `MAX_THREADS_PER_CORE`.

    `rounded_core_count` is the number of cores rounded, as the load of other programs is measured.
    """
    return (
        thread_count > MAX_THREADS_PER_CORE * core_count and thread_count >= rounded_core_count + 1
    )


def _finding(trace: Trace, demand: _ThreadDemand, operator_time: Evidence) -> Finding:
    taken = [Evidence(f"cores used by {who}", used, "count") for who, used in demand.users if used]
    return Finding(
        covers=("J2",) if demand.callers > 1 else ("J1",),
        title=str(demand),
        where=line_of_only_call(trace, "set_num_threads"),
        confidence=demand.confidence,
        evidence=(
            Evidence("threads that run operators", float(demand.total_thread_count), "count"),
            Evidence("cores available", demand.cores, "count"),
            operator_time,
            *taken,
        ),
        fix=Fix(
            "Use no more threads than there are cores; measure one or two fewer as well.",
            SET_THREAD_COUNT_FIX_CODE.format(threads=demand.fitting_threads_per_caller),
        ),
    )


def _share_of_time_waiting_for_cores(trace: Trace, operators: pl.DataFrame) -> float:
    """Returns the share of operators' time that exceeds the fastest calls with equal inputs.

    Of all that have equals, or of those that fit into a slice, where these are a good part of all.
    """
    equal_operator_groups = (
        slices_with_arguments(trace, "op_args", operators, "input_shapes")
        .with_columns(pl.col("input_shapes").cast(pl.String))
        .group_by("name", "input_shapes")
        .agg(runs=pl.len(), all=pl.col("duration").sum(), least=pl.col("duration").min())
        .filter(pl.col("runs") >= MIN_RUNS_OF_EQUAL_OPERATORS)
    )
    short = equal_operator_groups.filter(pl.col("least") < SCHEDULER_TIME_SLICE_NS)
    min_total_ns: float = MIN_MULTITHREADED_SHARE_OF_STEP * sum(operators["duration"].to_list())
    return max(
        _share_of_time_beyond_quickest_runs(equal_operator_groups, min_total_ns),
        _share_of_time_beyond_quickest_runs(short, min_total_ns),
    )


def _share_of_time_beyond_quickest_runs(
    equal_operator_groups: pl.DataFrame, min_total_ns: float
) -> float:
    """Returns the share of operator time by which calls exceed the fastest call of their group.

    It is 0 if the groups take less than `min_total_ns` in total.
    """
    spent: int = sum(equal_operator_groups["all"].to_list())
    quick: int = sum(
        (equal_operator_groups["runs"].cast(pl.Int64) * equal_operator_groups["least"]).to_list()
    )
    return 1 - quick / spent if spent and spent >= min_total_ns else 0.0


def _multithreaded_operators(trace: Trace) -> pl.DataFrame:
    """Returns the measured steps' operators that are long enough to be split among threads."""
    long_operators = outermost_operators(trace).filter(
        pl.col("duration") >= MIN_MULTITHREADED_OPERATOR_NS
    )
    return filter_by_name(long_operators, names.is_aten_operator)


def _count_concurrent_calling_threads(operators: pl.DataFrame) -> int:
    """Returns the number of threads that call operators at the same time, at least 1."""
    if not operators.height:
        return 1
    begin = operators["start"].to_numpy()
    end = begin + operators["duration"].to_numpy()
    when = np.concatenate([begin, end])
    change = np.concatenate([np.ones(begin.size, np.int64), -np.ones(end.size, np.int64)])
    order = np.lexsort((change, when))
    open_, passed = np.cumsum(change[order])[:-1], np.diff(when[order])
    total = int(passed[open_ > 0].sum())
    level = 1
    while int(passed[open_ > level].sum()) >= max(
        MIN_TIME_SHARE_WITH_CONCURRENT_CALLERS * total, 1
    ):
        level += 1
    return level


def _longest_operator_ids(operators: pl.DataFrame) -> tuple[int, ...]:
    longest = operators.sort("duration", "id", descending=[True, False]).head(3)
    return tuple(longest["id"].to_list())
