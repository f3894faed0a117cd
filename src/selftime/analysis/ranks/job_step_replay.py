"""Computes the steps of a job anew, with other times of its work and its transfers.

Waits whose cause is not recorded are no work of a rank. What becomes of them if another rank is
faster is unknown: each step is computed once with them as recorded, and once without them.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime.analysis.graph.dependency_graphs import MAX_REACTION_AFTER_WAIT_NS
from selftime.analysis.ranks.job_graph import NO_STEP, JobGraph
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.array_types import Floats, Ints


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


class StepReplay:
    """Computes the mean step of a job for other times of its work and its transfers."""

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

    def step(self, work: Floats, transfer: Floats | None = None) -> StepTimes:
        """Returns the mean step for other times of the work, and of the transfers.

        Args:
            work: How long the work on each path takes, in ns, shape (p,).
            transfer: How long each meeting takes once all have come, in ns, shape (m,); None for
                what is recorded.
        """
        lag = self._graph.lag + (work - self._work)
        ends = self._graph.ends(np.stack([lag, lag - self._unknown_waits]), transfer)
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
