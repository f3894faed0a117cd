"""One rank comes late to what all of them do together.

## What it means
All ranks have to be there before gradients, parameters or tokens are exchanged. One of them comes
later than the others, step after step, by more than what varies from step to step. Traces of
several ranks tell it: their clocks are brought together at the ends of the exchanges.

## Why it costs
All the other ranks wait, and it looks as if the network were slow: their exchanges take long, and
that of the late rank is the shortest. What the late rank has more to do, every rank pays for.

## What to do
Look at what that rank does more of. Batches that come late: share the files and the work on them
out evenly, give each rank as many workers, keep other programs off its machine. More to compute:
longer sequences or larger inputs (put inputs of like length together over all ranks), an uneven
division into stages, work that only this rank does, such as logging or evaluation. The same
kernels, and each of them slower: the device is throttled, too hot or shared. Garbage collection:
`gc.freeze()` after the first steps, and `gc.collect()` on all ranks in the same step. Host: what
runs between operators on this rank alone.

## Fires on
Batches that come 4 ms later on one of two ranks.

    column = 1 ms
    rank 0
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    mark 1 | l           l           l           l
    call 1 |  knwwwwwwwww knwwwwwwwww knwwwwwwwww knwwwwwwwww
    gpu 7  |   kkkk        kkkk        kkkk        kkkk
    gpu 20 |       nnnnnn      nnnnnn      nnnnnn      nnnnnn
    rank 1
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    mark 1 | lllll       lllll       lllll       lllll
    call 1 |      knwwwww     knwwwww     knwwwww     knwwwww
    gpu 7  |       kkkk        kkkk        kkkk        kkkk
    gpu 20 |           nn          nn          nn          nn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    l = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:8 main
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize

## Silent on
Now the one rank is late, and now the other.

    column = 1 ms
    rank 0
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    mark 1 | l           lllll       l           lllll
    call 1 |  knwwwwwwwww     knwwwww knwwwwwwwww     knwwwww
    gpu 7  |   kkkk            kkkk    kkkk            kkkk
    gpu 20 |       nnnnnn          nn      nnnnnn          nn
    rank 1
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    mark 1 | lllll       l           lllll       l
    call 1 |      knwwwww knwwwwwwwww     knwwwww knwwwwwwwww
    gpu 7  |       kkkk    kkkk            kkkk    kkkk
    gpu 20 |           nn      nnnnnn          nn      nnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    l = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:8 main
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize

The trace of one rank alone does not tell who is late.

    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    mark 1 | l           l           l           l
    call 1 |  knwwwwwwwww knwwwwwwwww knwwwwwwwww knwwwwwwwww
    gpu 7  |   kkkk        kkkk        kkkk        kkkk
    gpu 20 |       nnnnnn      nnnnnn      nnnnnn      nnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    l = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:8 main
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

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
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import ERROR
from selftime.advice.replay import Change, Cut, Scale
from selftime.advice.replay.job import job_replay
from selftime.analysis.device.work import device_work
from selftime.analysis.ranks.collectives import collectives
from selftime.analysis.ranks.lateness import excess, rounds
from selftime.analysis.ranks.ranks import Ranks
from selftime.analysis.ranks.stragglers import Verdict, straggler_verdicts
from selftime.analysis.ranks.time_before import held_up
from selftime.analysis.steps.steady_steps import assessed_steps, recorded_windows
from selftime.intervals import Intervals, subtract
from selftime.trace import Trace

FIXES: Final = {
    "data": "Have batches come as early on this rank as on the others: share files and the work "
    "on them out evenly, and give each rank as many workers.",
    "compute": "Give this rank as much to compute as the others: put inputs of like size together "
    "over all ranks, and do on every rank what only this one does.",
    "clocks": "See why the device of this rank is slower: heat, a power limit, another program on "
    "it (`nvidia-smi -q -d PERFORMANCE,CLOCK`); or leave it out.",
    "gc": "Keep the garbage collector from running within steps: `gc.freeze()` after the first, "
    "and `gc.collect()` on all ranks in the same step.",
    "host": "See what the program does on this rank alone between operators, and do it rarely, "
    "in another thread, or on all ranks at once.",
}
"""What to do about each cause."""

SLOWER: Final = {"clocks": "compute"}
"""What a cause takes more of, where it has another name."""


@rule(covers=("I4",), needs=("steps",))
def check(trace: Trace, ranks: Ranks | None) -> Iterator[Outcome]:
    limits = gate(trace)
    if limits is None or not collectives(trace).height:
        yield Checked("ranks do nothing together in this trace", is_absent=True)
        return
    every = {} if ranks is None else ranks.by_key()
    if ranks is None or len(every) < 2:
        yield Unknown("traces of several ranks: give their folder")
        return
    said = straggler_verdicts(ranks)
    late = [one for one in said if one.is_straggler]
    untold = [one for one in said if one.late is None]
    if len(untold) == len(said):
        yield Unknown(f"traces whose exchanges belong together: {untold[0].why_not}")
        return
    if not late:
        waited = rounds(ranks).group_by("rank").agg(pl.col("waited").mean())["waited"].max()
        reason = "no rank arrives later than the other ranks by more than their steps vary"
        yield Checked(reason, limits.unrecorded(float(waited or 0) / 1e6))  # type: ignore[arg-type]  # a number
        return
    for one in late:
        yield limits.judge(_finding(trace, ranks, limits, one))


def _finding(trace: Trace, ranks: Ranks, limits: Gate, one: Verdict) -> Finding:
    rank = ranks.by_key()[one.key]
    own = rounds(ranks).filter(pl.col("rank") == one.key)
    means = own.select(pl.col("held", "last", "collectives").mean()).row(0, named=True)
    evidence = [
        Evidence("arrives later than the other ranks by", (one.late or 0.0) / 1e6, "ms"),
        Evidence("the other ranks wait for it", means["held"] / 1e6, "ms"),
        Evidence(
            "collectives that it arrived last to", means["last"] / means["collectives"], "ratio"
        ),
    ]
    if one.more is not None:
        evidence.append(Evidence(f"more of it: {one.cause}", one.more / 1e6, "ms"))
    others = len(ranks.by_key()) - 1
    whom = "the other one" if others == 1 else f"the {others} others"
    fix = FIXES[one.cause] if one.cause else "See in what it differs: `selftime view ranks`."
    return Finding(
        title=f"`{rank.label}` makes {whom} wait: {one.why}",
        where=_where(one),
        count_per_step=means["last"],
        saving=_saving(ranks, limits, one),
        confidence="high" if one.cause is not None else "low",
        evidence=tuple(evidence),
        fix=Fix(fix),
        changes=_changes(trace, one, own) if ranks.key_of(trace) == one.key else (),
    )


def _where(one: Verdict) -> Where:
    if one.line is None:
        return Where()
    told = one.line
    return Where(told["file"], told["line"], told["function"], told["how"] or "unknown")


def _saving(ranks: Ranks, limits: Gate, one: Verdict) -> Saving:
    """By the replay of the job without what the rank does more of; else a bound."""
    bound = (one.more if one.more is not None else one.beyond or 0.0) / 1e6
    if one.cause is None:
        return Saving(upper_ms=min(bound, limits.step_ms))
    less = excess(ranks, one.key, SLOWER.get(one.cause, one.cause))
    estimate = min(max(job_replay(ranks).saving(one.key, less) / 1e6, 0.0), limits.step_ms)
    upper = min(max(bound, estimate), limits.step_ms)
    return Saving.of_step(
        limits.step_ms,
        estimate,
        method="replay",
        low_ms=(1 - ERROR) * estimate,
        high_ms=min((1 + ERROR) * estimate, upper),
        upper_ms=upper,
    )


def _changes(trace: Trace, one: Verdict, own: pl.DataFrame) -> tuple[Change, ...]:
    """On the late rank itself: it does as much of the cause as the others."""
    if one.cause is None or one.more is None:
        return ()
    cause = SLOWER.get(one.cause, one.cause)
    spent = float(own[cause].mean() or 0)  # type: ignore[arg-type]  # a number
    keep = max(1 - one.more / spent, 0.0) if spent > 0 else 1.0
    work = device_work(trace)
    if cause == "compute" and work.height:
        computed = work.filter(pl.col("kind") != "communication")["id"]
        return (Scale(computed.cast(pl.Int64).to_numpy(), keep),)
    return (Cut(_times(trace, cause), keep),)


def _times(trace: Trace, cause: str) -> Intervals:
    """When the cause held the rank up; the host did where nothing else did."""
    when = held_up(trace)
    if cause != "host":
        return when[cause]
    left = recorded_windows(assessed_steps(trace))
    for other in when.values():
        left = subtract(left, other)
    return left
