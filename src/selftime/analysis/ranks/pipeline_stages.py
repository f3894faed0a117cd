"""Tells which stage of a pipeline each rank computes, from the messages that ranks send each other.

Ranks that exchange messages form a chain, or with interleaved stages a ring. The first stage is
that of the rank which sends before it receives.
"""

from collections import defaultdict

import polars as pl


def stage_of_ranks(rows: pl.DataFrame) -> dict[int, int]:
    """Returns the stage of each rank, from 0; empty if the ranks form no pipeline that is clear.

    Args:
        rows: One row for each rank and collective: rank, match, collective, start, as in
            `AlignedCollectives.rows`.
    """
    messages = rows.filter(pl.col("collective").is_in(["send", "recv"])).sort("start")
    begins = messages.group_by("rank").agg(pl.col("collective").first())
    begins_with_send = dict(begins.iter_rows())
    neighbours = _ranks_joined_by_messages(messages)
    stages: dict[int, int] = {}
    for first in sorted(neighbours):
        if begins_with_send[first] == "send" and len(neighbours[first]) <= 2:
            stages |= _stages_from(first, neighbours, stages)
    ranks = set(rows["rank"].unique().to_list())
    return stages if stages and stages.keys() == ranks else {}


def _ranks_joined_by_messages(messages: pl.DataFrame) -> dict[int, set[int]]:
    matched = messages.filter(pl.col("match").is_not_null())
    sends, receives = (
        matched.filter(pl.col("collective") == kind).select("match", "rank")
        for kind in ("send", "recv")
    )
    pairs = sends.join(receives, on="match", suffix="_receiver")
    neighbours: defaultdict[int, set[int]] = defaultdict(set)
    for sender, receiver in pairs.select("rank", "rank_receiver").unique().iter_rows():
        neighbours[sender].add(receiver)
        neighbours[receiver].add(sender)
    return neighbours


def _stages_from(
    first: int, neighbours: dict[int, set[int]], known: dict[int, int]
) -> dict[int, int]:
    """Returns the stages of a chain from its first rank on; empty if it branches."""
    stages = {first: 0}
    rank = first
    while left := sorted(neighbours[rank] - stages.keys()):
        if rank in known or len(neighbours[rank]) > 2 or (rank != first and len(left) > 1):
            return {}
        rank = left[0]
        stages[rank] = len(stages)
    return stages
