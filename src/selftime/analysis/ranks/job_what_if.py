"""Computes what the steps of a job would take with several changes at once.

All changes are made before the job is replayed once, so that what they save together is neither
counted twice nor missed: a slow rank may only show once the stages of the pipeline are alike.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Final, cast

import numpy as np
import polars as pl

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.communication_groups import communication_groups
from selftime.analysis.ranks.job_graph import NO_COLLECTIVE, JobGraph, job_graph
from selftime.analysis.ranks.job_path_work import (
    IMBALANCES,
    UNEQUAL_STAGES,
    Imbalance,
    JobPathWork,
)
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.job_step_replay import StepReplay, StepTimes
from selftime.analysis.ranks.pipeline_stages import stage_of_ranks
from selftime.array_types import Flags

TRANSFERS_OF: Final = "transfers of "
"""How the change begins that a group's data is moved in no time; its group follows."""
_MAX_GROUPS: Final = 4
"""Largest number of groups whose transfers can be left out, those with most time."""


@dataclass(frozen=True, slots=True, eq=False)
class JobWhatIf:
    """What a job can be computed without, and what its steps take."""

    recorded: StepTimes
    changes: tuple[str, ...]
    """All that the job can be computed without: imbalances, then transfers of groups."""
    _replay: StepReplay
    _work: JobPathWork
    _graph: JobGraph
    _is_of_group: dict[str, Flags]
    """For each change to transfers the meetings that it is about, shape (m,)."""

    def without(self, changes: Iterable[str]) -> StepTimes:
        """Returns the steps without all of the changes, computed together."""
        left_out = [change for change in self.changes if change in set(changes)]
        if not left_out:
            return self.recorded
        imbalances = [cast("Imbalance", one) for one in left_out if one not in self._is_of_group]
        transfer = self._graph.transfer.astype(np.float64)
        for one in left_out:
            if one in self._is_of_group:
                transfer[self._is_of_group[one]] = 0.0
        return self._replay.step(self._work.without(*imbalances), transfer)

    def combinations(self) -> list[tuple[str, ...]]:
        """Returns every choice of the changes but the empty one, small ones first."""
        return [
            chosen
            for count in range(1, len(self.changes) + 1)
            for chosen in combinations(self.changes, count)
        ]


@cached_per_trace
def job_what_if(ranks: Ranks) -> JobWhatIf | None:
    """Returns what a job can be computed without; None unless two ranks have two steps in a row."""
    graph = job_graph(ranks)
    replay = StepReplay(ranks, graph)
    if not replay.can_tell:
        return None
    work = JobPathWork(ranks, graph, stage_of_ranks(collectives_on_one_clock(ranks).rows))
    imbalances = [one for one in IMBALANCES if one != UNEQUAL_STAGES or work.load_of_stage]
    is_of_group = _meetings_of_groups(ranks, graph)
    return JobWhatIf(
        recorded=replay.step(work.recorded),
        changes=(*imbalances, *is_of_group),
        _replay=replay,
        _work=work,
        _graph=graph,
        _is_of_group=is_of_group,
    )


def _meetings_of_groups(ranks: Ranks, graph: JobGraph) -> dict[str, Flags]:
    """Returns for each group, most time first, which meetings move its data.

    Only where all ranks of a meeting are known is the transfer told apart from the wait for them.
    """
    rows = collectives_on_one_clock(ranks).rows
    if not rows.height:
        return {}
    told = rows.select(
        is_shared=pl.col("match").is_not_null() & pl.col("wait").is_not_null(),
        group=communication_groups(rows),
    )
    own = np.flatnonzero(graph.collective != NO_COLLECTIVE)
    meetings = told[graph.collective[own]].with_columns(meeting=graph.meeting[own])
    meetings = meetings.filter("is_shared").drop_nulls("group").unique("meeting")
    meetings = meetings.with_columns(time=graph.transfer[meetings["meeting"].to_numpy()])
    sums = meetings.group_by("group").agg(pl.col("time").sum()).filter(pl.col("time") > 0)
    order = sums.sort("time", "group", descending=[True, False])["group"].head(_MAX_GROUPS)
    found: dict[str, Flags] = {}
    for group in order.to_list():
        name = f"{TRANSFERS_OF}{group.replace(',', ';')}"  # commas separate changes
        is_one = found.setdefault(name, np.zeros(graph.transfer.size, bool))
        is_one[meetings.filter(pl.col("group") == group)["meeting"].to_numpy()] = True
    return found
