"""Computes what imbalance between the ranks of a job costs: slow ranks, stages, micro-batches.

The graph of the job is replayed with other times of the work on its paths (what-if analysis, as in
"Understanding Stragglers in Large Model Training Using What-if Analysis", Lin et al., OSDI 2025):

- without slow ranks: a rank takes as long as its peers, which do the same work;
- without imbalance of stages: each stage of a pipeline has as much to compute as the mean stage;
- without imbalance of micro-batches: the same work takes as long each time;
- balanced: all of these.

Waits whose cause is not recorded are no work of a rank. What becomes of them if another rank is
faster is unknown: each step is computed once with them as recorded, and once without them.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.graph.dependency_graphs import MAX_REACTION_AFTER_WAIT_NS
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.job_graph import NO_STEP, JobGraph, job_graph
from selftime.analysis.ranks.job_path_work import JobPathWork
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.pipeline_stages import stage_of_ranks
from selftime.array_types import Floats, Ints

_MIN_SHARE_TO_NAME_RANKS: Final = 0.8
"""Smallest share (0 to 1) of what all slow ranks cost that those named must explain together."""
_MAX_NAMED_RANKS: Final = 4
"""Largest number of ranks that are named as slow."""
_MAX_RANKS_REPLAYED_ALONE: Final = 8
"""Largest number of ranks, those with the most excess, that are each replayed as fast as peers."""


@dataclass(frozen=True, slots=True, eq=False)
class StepTimes:
    """The steps of a job in ns: with waits of unknown cause as recorded, and without them."""

    each: Floats
    """Each step of each rank with these waits, and without them; shape (2, steps of all ranks)."""
    count: int
    """How many steps a rank has; ranks of one step are no further samples of it."""

    @property
    def with_unknown_waits(self) -> float:
        """The mean step with waits of unknown cause."""
        return float(self.each[0].mean())

    @property
    def without_unknown_waits(self) -> float:
        """The mean step without waits of unknown cause."""
        return float(self.each[1].mean())

    def longer_than(self, other: "StepTimes") -> tuple[float, float]:
        """Returns by how many ns the mean step is longer than another: the least and the most."""
        found = (self.each - other.each).mean(axis=1)
        return float(found.min()), float(found.max())

    def error_of_excess(self, other: "StepTimes") -> float:
        """Returns the standard error in ns of how much longer than another the mean step is."""
        return float((self.each - other.each)[1].std() / np.sqrt(self.count))


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
    replay = _StepReplay(ranks, graph)
    if not replay.can_tell:
        return None
    stages = stage_of_ranks(collectives_on_one_clock(ranks).rows)
    work = JobPathWork(ranks, graph, stages)
    slowness = work.slowness_of_ranks()
    excess = {rank: work.excess_of(rank) for rank, ratio in slowness.items() if ratio > 1}
    tried = sorted(excess, key=lambda rank: (-excess[rank], rank))[:_MAX_RANKS_REPLAYED_ALONE]
    return JobImbalance(
        recorded=replay.step(work.recorded),
        without_slow_ranks=replay.step(work.as_peers(list(slowness))),
        without_stage_imbalance=replay.step(work.with_equal_stages),
        without_micro_batch_imbalance=replay.step(work.with_equal_micro_batches),
        balanced=replay.step(work.balanced),
        stage_of_rank=stages,
        load_of_stage=work.load_of_stage,
        slowness_of_rank=slowness,
        device_slowness_of_rank={rank: work.device_slowness(rank) for rank in slowness},
        variation=work.variation(),
        without_rank={rank: replay.step(work.as_peers([rank])) for rank in tried},
    )


class _StepReplay:
    """Computes the mean step of a job for other times of the work on its paths."""

    def __init__(self, ranks: Ranks, graph: JobGraph) -> None:
        self._graph = graph
        self._last, self._next = _ends_of_successive_steps(ranks, graph)
        self._count = int(np.bincount(graph.rank[self._next]).max(initial=0))
        self._work = graph.device_time + graph.host_time
        is_first = graph.before == graph.rank.size
        waits = np.where(is_first, 0, graph.lag - self._work)
        self._unknown_waits = np.where(waits > MAX_REACTION_AFTER_WAIT_NS, waits, 0)

    @property
    def can_tell(self) -> bool:
        """Whether two ranks have two steps, one after the other."""
        return np.unique(self._graph.rank[self._last]).size > 1

    def step(self, work: Floats) -> StepTimes:
        """Returns the mean step if the work on each path takes these ns, shape (p,)."""
        lag = self._graph.lag + (work - self._work)
        ends = self._graph.ends(np.stack([lag, lag - self._unknown_waits]))
        return StepTimes(ends[:, self._next] - ends[:, self._last], self._count)


def _ends_of_successive_steps(ranks: Ranks, graph: JobGraph) -> tuple[Ints, Ints]:
    """Returns the nodes that end the step before each typical one, and those that end that one."""
    last, next_ = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for key, rank in ranks.ranks_by_key().items():
        steps = rank.summary.steps
        if not steps.height:
            continue
        node = np.full(steps.height, -1)
        own = np.flatnonzero((graph.rank == key) & (graph.step != NO_STEP))
        node[graph.step[own]] = own
        follows = steps.select(pl.col("number").diff() == 1).to_series().fill_null(value=False)
        typical = follows & steps["counted"]
        at = np.flatnonzero((typical if typical.any() else follows).to_numpy())
        at = at[(node[at] >= 0) & (node[at - 1] >= 0)]
        last.append(node[at - 1])
        next_.append(node[at])
    return np.concatenate(last), np.concatenate(next_)
