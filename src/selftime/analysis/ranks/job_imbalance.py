"""Computes what imbalance between the ranks of a job costs: slow ranks, stages, micro-batches.

The graph of the job is replayed with other times of the work on its paths (what-if analysis, as in
"Understanding Stragglers in Large Model Training Using What-if Analysis", Lin et al., OSDI 2025):

- without slow ranks: a rank takes as long as its peers, which do the same work;
- without imbalance of stages: each stage of a pipeline has as much to compute as the mean stage;
- without imbalance of micro-batches: the same work takes as long each time;
- balanced: all of these.
"""

from dataclasses import dataclass
from typing import Final

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.job_graph import job_graph
from selftime.analysis.ranks.job_path_work import (
    IMBALANCES,
    SLOW_RANKS,
    UNEQUAL_MICRO_BATCHES,
    UNEQUAL_STAGES,
    JobPathWork,
)
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.job_step_replay import StepReplay, StepTimes
from selftime.analysis.ranks.pipeline_stages import stage_of_ranks

_MIN_SHARE_TO_NAME_RANKS: Final = 0.8
"""Smallest share (0 to 1) of what all slow ranks cost that those named must explain together."""
_MAX_NAMED_RANKS: Final = 4
"""Largest number of ranks that are named as slow."""
_MAX_RANKS_REPLAYED_ALONE: Final = 8
"""Largest number of ranks, those with the most excess, that are each replayed as fast as peers."""


@dataclass(frozen=True, slots=True, eq=False)
class JobImbalance:
    """What the step of a job takes, and would take without each kind of imbalance."""

    recorded: StepTimes
    without_slow_ranks: StepTimes
    without_stage_imbalance: StepTimes
    without_micro_batch_imbalance: StepTimes
    balanced: StepTimes
    stage_of_rank: dict[int, int]
    """The stage of each rank; empty without a pipeline."""
    load_of_stage: dict[int, float]
    """What each stage has to compute, as a ratio to the mean stage; empty without a pipeline."""
    slowness_of_rank: dict[int, float]
    """How long each rank takes for its work, as a ratio to its peers; 1 if they are slower."""
    device_slowness_of_rank: dict[int, float]
    """The same of the work of each rank's device alone."""
    variation: float
    """The coefficient of variation of the device time of the same work on the same rank."""
    without_rank: dict[int, StepTimes]
    """The step if one rank alone were as fast as its peers, for the ranks with the most excess."""

    @property
    def slow_ranks(self) -> list[int]:
        """The fewest ranks that together explain what slow ranks cost; none if that takes many."""
        lost = self.recorded.longer_than(self.without_slow_ranks)[1]
        gains = {
            rank: self.recorded.longer_than(times)[1] for rank, times in self.without_rank.items()
        }
        order = sorted(gains, key=lambda rank: (-gains[rank], rank))[:_MAX_NAMED_RANKS]
        for count in range(1, len(order) + 1):
            explained = sum(gains[rank] for rank in order[:count])
            if lost > 0 and explained >= _MIN_SHARE_TO_NAME_RANKS * lost:
                return order[:count]
        return []

    def is_device_slower(self, rank: int) -> bool:
        """Returns whether a rank is slow by its device rather than by its host."""
        return self.device_slowness_of_rank[rank] - 1 > (self.slowness_of_rank[rank] - 1) / 2


@cached_per_trace
def job_imbalance(ranks: Ranks) -> JobImbalance | None:
    """Returns what imbalance costs a job; None unless two ranks have two steps in a row."""
    graph = job_graph(ranks)
    replay = StepReplay(ranks, graph)
    if not replay.can_tell:
        return None
    stages = stage_of_ranks(collectives_on_one_clock(ranks).rows)
    work = JobPathWork(ranks, graph, stages)
    slowness = work.slowness_of_ranks()
    excess = {rank: work.excess_of(rank) for rank, ratio in slowness.items() if ratio > 1}
    tried = sorted(excess, key=lambda rank: (-excess[rank], rank))[:_MAX_RANKS_REPLAYED_ALONE]
    return JobImbalance(
        recorded=replay.step(work.recorded),
        without_slow_ranks=replay.step(work.without(SLOW_RANKS)),
        without_stage_imbalance=replay.step(work.without(UNEQUAL_STAGES)),
        without_micro_batch_imbalance=replay.step(work.without(UNEQUAL_MICRO_BATCHES)),
        balanced=replay.step(work.without(*IMBALANCES)),
        stage_of_rank=stages,
        load_of_stage=work.load_of_stage,
        slowness_of_rank=slowness,
        device_slowness_of_rank={rank: work.device_slowness(rank) for rank in slowness},
        variation=work.variation(),
        without_rank={rank: replay.step(work.as_peers([rank])) for rank in tried},
    )
