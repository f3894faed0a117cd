"""Micro-batches of unequal cost are computed at the same time.

## What it means
The ranks compute batches or micro-batches of unequal size at the same time: most often sequences of
unequal length, whose attention grows with the square of the length. No rank is slow: which one has
the most to do changes from one to the next.

## Why it costs
Where ranks meet, at the reduction of gradients or between two stages of a pipeline, all wait for
the one with the largest micro-batch. The mean of the work does not decide the step, its maximum
does.

## What to do
Put sequences of like length into the micro-batches that ranks compute at the same time: sort a
large buffer of samples by length, and deal them out so that each micro-batch has as much work,
counted in attention as well as in tokens; or pack sequences to equal cost. Share each step's
sequences among all ranks, rather than among those of one rank.

The estimate replays all ranks together, with the same work taking as long each time, its mean.
Variation of the device itself is in it too.

## Fires on
Two ranks have alternately twice as much to compute.

    column = 1 ms
    rank 0
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    call 1 | knwwwwwwwww knwwwwwwwww knwwwwwwwww knwwwwwwwww
    gpu 7  |  kkkk        kkkkkkkk    kkkk        kkkkkkkk
    gpu 20 |      nnnnnn          nn      nnnnnn          nn
    rank 1
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    call 1 | knwwwwwwwww knwwwwwwwww knwwwwwwwww knwwwwwwwww
    gpu 7  |  kkkkkkkk    kkkk        kkkkkkkk    kkkk
    gpu 20 |          nn      nnnnnn          nn      nnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize

## Silent on
One rank always has twice as much to compute: it is a slow rank.

    column = 1 ms
    rank 0
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    call 1 | knwwwwwwwww knwwwwwwwww knwwwwwwwww knwwwwwwwww
    gpu 7  |  kkkk        kkkk        kkkk        kkkk
    gpu 20 |      nnnnnn      nnnnnn      nnnnnn      nnnnnn
    rank 1
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuuvvvvvvvvvvvv
    call 1 | knwwwwwwwww knwwwwwwwww knwwwwwwwww knwwwwwwwww
    gpu 7  |  kkkkkkkk    kkkkkkkk    kkkkkkkk    kkkkkkkk
    gpu 20 |          nn          nn          nn          nn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize
"""

from collections.abc import Iterator

from selftime.advice.detectors.job_imbalance_claims import claim_of_step_times
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
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.ranks.collectives import collectives_of_trace
from selftime.analysis.ranks.job_imbalance import job_imbalance
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.trace import Trace


@rule(covers=("I10",), needs=("steps",), min_steps=3)
def check(trace: Trace, ranks: Ranks | None) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    if step_stats is None or not collectives_of_trace(trace).height:
        yield Checked("this trace has no collective operations between ranks", is_absent=True)
        return
    if ranks is None or len(ranks.ranks_by_key()) < 2:
        yield Unknown("traces of several ranks: give their folder")
        return
    found = job_imbalance(ranks)
    if found is None:
        yield Unknown("traces of two successive steps, whose collectives belong together")
        return
    claim = claim_of_step_times(
        trace, found.recorded, found.without_micro_batch_imbalance, step_stats
    )
    if claim.saved_ms <= 0:
        yield Checked("the same work takes about as long each time")
        return
    yield Finding(
        title="The same work takes longer for some micro-batches, and the other ranks wait",
        where=Where(),
        claim=claim,
        confidence="medium",
        semantics="training",
        evidence=(
            Evidence("variation of the device time of the same work", found.variation, "ratio"),
        ),
        fix=Fix(
            "Deal samples out so that the ranks compute micro-batches of equal cost at the same "
            "time: sort a buffer of samples by length, or pack sequences.",
        ),
    )
