"""One rank arrives late at collectives, and the other ranks wait for it.

## What it means
All ranks have to arrive before gradients, parameters or tokens are communicated. One of them
arrives later than the others, step after step, by more than the steps vary. It takes traces of
several ranks, whose clocks are aligned at the ends of collectives.

## Why it costs
All the other ranks wait, and it looks as if the network were slow: their collectives take long, and
that of the late rank is the shortest. What the late rank has more to do, every rank pays for.

## What to do
Look at what that rank does more of. Batches that come late: share the files and the work on them
out evenly, give each rank as many workers, keep other programs off its machine. More to compute:
longer sequences or larger inputs (put inputs of like length together over all ranks), experts that
get more tokens (its all-to-alls have more data), an uneven division into stages, work that only
this rank does, such as logging or evaluation. The same kernels, and each of them slower: the device
is throttled, too hot or shared. Garbage collection: `gc.freeze()` after the first steps, and
`gc.collect()` on all ranks in the same step. Host: what runs between operators on this rank alone.

The estimate replays all ranks together, with the late rank spending as little on the cause as the
others.

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
Sometimes one rank is late, sometimes the other.

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

The trace of one rank alone, which does not show which rank is late.

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

from selftime.advice.detectors.job_imbalance_claims import claim_of_step_times
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.advice.replay.job_replays import job_replay
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
from selftime.advice.savings.claims import ModelledClaim, UpperBoundClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.ranks.collectives import collectives_of_trace
from selftime.analysis.ranks.job_imbalance import JobImbalance, job_imbalance
from selftime.analysis.ranks.job_ranks import RankOfJob, Ranks
from selftime.analysis.ranks.lateness import excess_times_on_cause, rank_lateness_by_round
from selftime.analysis.ranks.rank_summary import lateness_cause_intervals
from selftime.analysis.ranks.straggler_verdicts import (
    StragglerVerdict,
    share_of_tokens,
    straggler_verdicts,
)
from selftime.analysis.steps.steady_steps import (
    recorded_time_windows_of_steps,
    steps_with_counted_flags,
)
from selftime.intervals import Intervals, subtract
from selftime.trace import Trace

FIX_TEXT_BY_LATENESS_CAUSE: Final = {
    "data": "Have batches come as early on this rank as on the others: share files and the work "
    "on them out evenly, and give each rank as many workers.",
    "compute": "Give this rank as much to compute as the others: put inputs of like size together "
    "over all ranks, and do on every rank what only this one does.",
    "clocks": "See why the device of this rank is slower: heat, a power limit, another program on "
    "it (`nvidia-smi -q -d PERFORMANCE,CLOCK`); or leave it out.",
    "experts": "Share out evenly what all-to-alls bring: tokens over experts, by a loss or a bias "
    "that balances the router, a capacity per expert, or busy experts on different ranks; or rows "
    "of tables.",
    "gc": "Keep the garbage collector from running within steps: `gc.freeze()` after the first, "
    "and `gc.collect()` on all ranks in the same step.",
    "host": "See what the program does on this rank alone between operators, and do it rarely, "
    "in another thread, or on all ranks at once.",
}
"""Text of the fix for each cause of a rank's lateness."""

EXCESS_TEXT_BY_LATENESS_CAUSE: Final = {
    "data": "time waiting for data, above that of the other ranks",
    "compute": "time of computation, above that of the other ranks",
    "clocks": "time in slower kernels, above that of the other ranks",
    "experts": "time of computation, above that of the other ranks",
    "gc": "time collecting garbage, above that of the other ranks",
    "host": "other time of the host, above that of the other ranks",
}
"""Name of the rank's additional time as evidence, for each cause of its lateness."""

TIMED_CAUSE_BY_LATENESS_CAUSE: Final = {"clocks": "compute", "experts": "compute"}
"""Maps a cause of lateness to another cause, whose times are compared between ranks instead."""


@rule(covers=("I4",), needs=("steps",))
def check(trace: Trace, ranks: Ranks | None) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    if step_stats is None or not collectives_of_trace(trace).height:
        yield Checked("this trace has no collective operations between ranks", is_absent=True)
        return
    every = {} if ranks is None else ranks.ranks_by_key()
    if ranks is None or len(every) < 2:
        yield Unknown("traces of several ranks: give their folder")
        return
    said = straggler_verdicts(ranks)
    late = [straggler for straggler in said if straggler.is_straggler]
    untold = [straggler for straggler in said if straggler.late_ns is None]
    if len(untold) == len(said):
        yield Unknown(f"traces whose collectives belong together: {untold[0].reason_not_straggler}")
        return
    if not late:
        waited = (
            rank_lateness_by_round(ranks)
            .group_by("rank")
            .agg(pl.col("waited").mean())["waited"]
            .max()
        )
        reason = "no rank arrives later than the other ranks by more than their steps vary"
        yield Checked(reason, float(waited or 0) / 1e6)  # type: ignore[arg-type]  # a number
        return
    for straggler in late:
        yield _finding(trace, ranks, step_stats, straggler)


def _finding(
    trace: Trace, ranks: Ranks, step_stats: StepStatistics, straggler: StragglerVerdict
) -> Finding:
    rank = ranks.ranks_by_key()[straggler.key]
    imbalance = job_imbalance(ranks)
    if imbalance is not None and imbalance.stage_of_rank:
        return _finding_in_pipeline(trace, rank, straggler, imbalance, step_stats)
    rounds = rank_lateness_by_round(ranks).filter(pl.col("rank") == straggler.key)
    means = rounds.select(pl.col("delayed_others", "last", "collectives").mean()).row(0, named=True)
    evidence = [
        Evidence("arrives later than the other ranks by", (straggler.late_ns or 0.0) / 1e6, "ms"),
        Evidence("the other ranks wait for it", means["delayed_others"] / 1e6, "ms"),
        Evidence(
            "collectives that it arrived last to", means["last"] / means["collectives"], "ratio"
        ),
    ]
    if straggler.cause is not None and straggler.excess_ns is not None:
        excess_text = EXCESS_TEXT_BY_LATENESS_CAUSE[straggler.cause]
        evidence.append(Evidence(excess_text, straggler.excess_ns / 1e6, "ms"))
    if straggler.cause == "experts":
        share = share_of_tokens(straggler.key, ranks)
        evidence.append(
            Evidence("data in its all-to-alls, as a ratio to the other ranks", share, "ratio")
        )
    others = len(ranks.ranks_by_key()) - 1
    whom = "the other one" if others == 1 else f"the {others} others"
    changes = (
        _changes_removing_excess_on_rank(trace, straggler, rounds)
        if ranks.key_of(trace) == straggler.key
        else ()
    )
    fix = (
        FIX_TEXT_BY_LATENESS_CAUSE[straggler.cause]
        if straggler.cause
        else "See how this rank differs from the others: `selftime view ranks`."
    )
    return Finding(
        title=f"`{rank.label}` makes {whom} wait: {straggler.why}",
        where=_line_of_straggler_excess(straggler),
        count_per_step=means["last"],
        claim=_straggler_excess_claim(ranks, step_stats, straggler, changes),
        confidence="high" if straggler.cause is not None else "low",
        evidence=tuple(evidence),
        fix=Fix(fix),
    )


def _finding_in_pipeline(
    trace: Trace,
    rank: RankOfJob,
    straggler: StragglerVerdict,
    imbalance: JobImbalance,
    step_stats: StepStatistics,
) -> Finding:
    """Returns the finding of a rank that is slower than the others of its stage of a pipeline."""
    cause = straggler.cause or "host"
    changed = imbalance.without_rank[straggler.key]
    least, most = imbalance.recorded.longer_than(changed)
    return Finding(
        title=f"`{rank.label}` makes the others wait: {straggler.why}",
        where=_line_of_straggler_excess(straggler),
        claim=claim_of_step_times(trace, imbalance.recorded, changed, step_stats),
        confidence="high" if least > most / 2 else "medium",  # else waits of unknown cause decide
        evidence=(
            Evidence(
                "time of its work, as a ratio to the other ranks of its stage",
                imbalance.slowness_of_rank[straggler.key],
                "ratio",
            ),
        ),
        fix=Fix(FIX_TEXT_BY_LATENESS_CAUSE[cause]),
    )


def _line_of_straggler_excess(straggler: StragglerVerdict) -> Where:
    if straggler.source_line is None:
        return Where()
    told = straggler.source_line
    return Where(told["file"], told["line"], told["function"], told["how"] or "unknown")


def _straggler_excess_claim(
    ranks: Ranks,
    step_stats: StepStatistics,
    straggler: StragglerVerdict,
    changes: tuple[Change, ...],
) -> ModelledClaim | UpperBoundClaim:
    """Returns a claim: the ms per step saved if the slow rank takes as long as the other ranks."""
    bound = (
        straggler.excess_ns
        if straggler.excess_ns is not None
        else straggler.late_beyond_others_ns or 0.0
    ) / 1e6
    if straggler.cause is None or not job_replay(ranks).can_tell:
        return UpperBoundClaim(min(bound, step_stats.step_ms))
    less = excess_times_on_cause(
        ranks, straggler.key, TIMED_CAUSE_BY_LATENESS_CAUSE.get(straggler.cause, straggler.cause)
    )
    estimate = min(
        max(job_replay(ranks).saving_ns(straggler.key, less) / 1e6, 0.0), step_stats.step_ms
    )
    return ModelledClaim(estimate, min(max(bound, estimate), step_stats.step_ms), changes=changes)


def _changes_removing_excess_on_rank(
    trace: Trace, straggler: StragglerVerdict, rounds: pl.DataFrame
) -> tuple[Change, ...]:
    """Returns simulated changes that remove the time by which the slow rank exceeds other ranks.

    Only the time that it spends on the cause of its lateness.
    """
    if straggler.cause is None or straggler.excess_ns is None:
        return ()
    cause = TIMED_CAUSE_BY_LATENESS_CAUSE.get(straggler.cause, straggler.cause)
    spent = float(rounds[cause].mean() or 0)  # type: ignore[arg-type]  # a number
    keep = max(1 - straggler.excess_ns / spent, 0.0) if spent > 0 else 1.0
    work = device_work(trace)
    if cause == "compute" and work.height:
        computed = work.filter(pl.col("kind") != "communication")["id"]
        return (ScaleDeviceWork(computed.cast(pl.Int64).to_numpy(), keep),)
    return (CutHostTime(_intervals_of_cause(trace, cause), keep),)


def _intervals_of_cause(trace: Trace, cause: str) -> Intervals:
    """Returns the intervals of one cause of lateness; `host` is time without any other cause."""
    when = lateness_cause_intervals(trace)
    if cause != "host":
        return when[cause]
    left = recorded_time_windows_of_steps(steps_with_counted_flags(trace))
    for other in when.values():
        left = subtract(left, other)
    return left
