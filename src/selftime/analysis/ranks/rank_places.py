"""Tells where in a job each rank stands: which stage of a pipeline it computes, and on which host.

The stage follows from the messages that ranks send each other; without such messages it is the
position in the process group of a pipeline.
"""

import json
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.pipeline_stages import stage_of_ranks
from selftime.names.collectives import parallel_axes_of_group

StageEvidence: TypeAlias = Literal["messages", "process groups"]
_AXIS_OF_PIPELINE: Final = "PP"


@dataclass(frozen=True, slots=True, eq=False)
class RankPlaces:
    """Where each rank stands, by keys of `Ranks.ranks_by_key`; unknown ranks are left out."""

    stage: dict[int, int]
    """The stage of a pipeline that each rank computes, from 0; empty without a pipeline."""
    stage_evidence: StageEvidence | None
    """How the stages are known; None if they are not."""
    host: dict[int, str]
    """The name of the machine that each rank ran on."""


@cached_per_trace
def rank_places(ranks: Ranks) -> RankPlaces:
    """Returns where each rank of a job stands."""
    every = ranks.ranks_by_key()
    host = {key: rank.summary.host for key, rank in every.items()}
    hosts = {key: name for key, name in host.items() if name is not None}
    rows = collectives_on_one_clock(ranks).rows
    stages = stage_of_ranks(rows) if rows.height else {}
    if stages:
        return RankPlaces(stages, "messages", hosts)
    stages = _positions_in_groups_of_pipeline(ranks)
    return RankPlaces(stages, "process groups" if stages else None, hosts)


def _positions_in_groups_of_pipeline(ranks: Ranks) -> dict[int, int]:
    """Returns the position of each rank in its pipeline's group; empty if that is not clear."""
    lists = {
        text
        for rank in ranks.ranks_by_key().values()
        for text, description in [
            *rank.summary.groups.select("ranks", "description").rows(),
            *rank.summary.collectives.select("group_ranks", "group_description").unique().rows(),
        ]
        if text and parallel_axes_of_group(description or "") == _AXIS_OF_PIPELINE
    }
    found: dict[int, int] = {}
    for text in sorted(lists):
        members = parse_ranks_of_group(text) or []
        if found.keys() & set(members):
            return {}
        found |= {rank: stage for stage, rank in enumerate(members)}
    is_told = len(set(found.values())) > 1 and found.keys() >= ranks.ranks_by_key().keys()
    return found if is_told else {}


def parse_ranks_of_group(ranks_json: str | None) -> list[int] | None:
    """Returns the ranks of a process group; None if the trace does not list all of them.

    >>> parse_ranks_of_group("[0, 2, 4]"), parse_ranks_of_group("[0, 1, ...]")
    ([0, 2, 4], None)
    """
    try:
        members = json.loads(ranks_json or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, list) or not all(type(member) is int for member in members):
        return None
    return members
