"""The stages of a pipeline have unequal amounts to compute.

## What it means
A pipeline gives each stage a part of the layers. One stage has more to compute for each micro-batch
than the others, most often the last, which computes the logits and the loss, or the first with the
embedding.

## Why it costs
All stages work at the pace of the slowest one: the others wait for it at each micro-batch, forward
and backward. Its rank is not slow, it has more to do.

## What to do
Move layers: give the stage with the most work fewer of them than the others, so that all take as
long (`split_points` of `torch.distributed.pipelining`, `--decoder-first-pipeline-num-layers` and
`--decoder-last-pipeline-num-layers` of Megatron). Shard the embedding and the logits over the ranks
of the stage (vocabulary parallel). Compute the loss in pieces.

The estimate replays all ranks together, with the work of each stage scaled to that of the mean
stage.

## Fires on
The second of two stages computes 2.5 times as long as the first.

    column = 1 ms
    rank 0
    mark 1 | ssssssssssssssssttttttttttttttttuuuuuuuuuuuuuuuu
    call 1 | adbenwwwwwwwwww adbenwwwwwwwwww adbenwwwwwwwwww
    gpu 7  |  aabb            aabb            aabb
    gpu 21 |    d e             d e             d e
    gpu 20 |       nnnnnnnnn       nnnnnnnnn       nnnnnnnnn
    rank 1
    mark 1 | ssssssssssssssssttttttttttttttttuuuuuuuuuuuuuuuu
    call 1 | rfqgnwwwwwwwwww rfqgnwwwwwwwwww rfqgnwwwwwwwwww
    gpu 7  |     fffffggggg      fffffggggg      fffffggggg
    gpu 22 |  rrrqq           rrrqq           rrrqq
    gpu 20 |               n               n               n
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = void forward<float>()
    b = void forward<float>()
    f = void forward<float>()
    g = void forward<float>()
    d = ncclDevKernel_SendRecv; collective = send; destination = 1
    e = ncclDevKernel_SendRecv; collective = send; destination = 1
    r = ncclDevKernel_SendRecv; collective = recv; source = 0
    q = ncclDevKernel_SendRecv; collective = recv; source = 0
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize

## Silent on
Two stages with as much to compute.

    column = 1 ms
    rank 0
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    call 1 | adbenwwwwww adbenwwwwww adbenwwwwww
    gpu 7  |  aaabbb      aaabbb      aaabbb
    gpu 21 |     d  e        d  e        d  e
    gpu 20 |         nnn         nnn         nnn
    rank 1
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    call 1 | rfqgnwwwwww rfqgnwwwwww rfqgnwwwwww
    gpu 7  |      fffggg      fffggg      fffggg
    gpu 22 |  rrrrqqq     rrrrqqq     rrrrqqq
    gpu 20 |            n           n           n
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = void forward<float>()
    b = void forward<float>()
    f = void forward<float>()
    g = void forward<float>()
    d = ncclDevKernel_SendRecv; collective = send; destination = 1
    e = ncclDevKernel_SendRecv; collective = send; destination = 1
    r = ncclDevKernel_SendRecv; collective = recv; source = 0
    q = ncclDevKernel_SendRecv; collective = recv; source = 0
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
from selftime.analysis.ranks.job_imbalance import JobImbalance, job_imbalance
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.trace import Trace


@rule(covers=("I9",), needs=("steps",), min_steps=2)
def check(trace: Trace, ranks: Ranks | None) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    exchanged = collectives_of_trace(trace)["collective"].is_in(["send", "recv"])
    if step_stats is None or not exchanged.any():
        yield Checked("the ranks of this job are no stages of a pipeline", is_absent=True)
        return
    if ranks is None or len(ranks.ranks_by_key()) < 2:
        yield Unknown("traces of several ranks: give their folder")
        return
    found = job_imbalance(ranks)
    if found is None or not found.load_of_stage:
        yield Unknown("traces of all stages, whose sends and receives belong together")
        return
    least, most = (f"stage {stage}" for stage in _least_and_most_loaded(found))
    claim = claim_of_step_times(trace, found.recorded, found.without_stage_imbalance, step_stats)
    if claim.saved_ms <= 0:
        yield Checked("the stages of the pipeline have about as much to compute")
        return
    load = max(found.load_of_stage.values())
    where = sorted(rank for rank, at in found.stage_of_rank.items() if f"stage {at}" == most)
    yield Finding(
        title=f"The stages of the pipeline are unequal: {most} has the most to compute",
        where=Where(),
        claim=claim,
        confidence="medium",
        evidence=(
            Evidence(
                f"work of {most}, on {_ranks_text(where)}, as a ratio to the mean stage",
                load,
                "ratio",
            ),
            Evidence(
                f"work of {least}, as a ratio to the mean stage",
                min(found.load_of_stage.values()),
                "ratio",
            ),
        ),
        fix=Fix(
            f"Give {most} fewer layers than the others, and {least} more; shard the embedding and "
            "the logits over ranks.",
        ),
    )


def _least_and_most_loaded(found: JobImbalance) -> tuple[int, int]:
    order = sorted(found.load_of_stage, key=lambda stage: found.load_of_stage[stage])
    return order[0], order[-1]


def _ranks_text(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:4]))
    more = f" and {len(ranks) - 4} more" if len(ranks) > 4 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"
