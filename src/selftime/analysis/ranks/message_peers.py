"""Finds whom a rank sends messages to on the host, from the calls that send and receive them.

The annotation around a message that Gloo sends does not name the other rank; the call
`c10d::send(tensors, group, destination, tag)` does, and `c10d::recv_` alike. Both number ranks
within their process group.
"""

import json
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.ranks.rank_and_process_groups import process_groups, rank_and_size
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import slices_on
from selftime.array_types import Ints
from selftime.names.collectives import parallel_axes_of_group
from selftime.trace import Trace

_CALL_OF_MESSAGE: Final = {"send": "c10d::send", "recv": "c10d::recv_"}
_POSITION_OF_PEER: Final = 2
"""Which argument of these calls is the other rank."""


def with_peers_of_messages(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Returns collectives of the host with the unknown peers of their messages.

    Args:
        trace: The trace.
        rows: One row per collective, with the columns collective, start, source and destination.
    """
    given: dict[str, list[int | None]] = {}
    for kind, column in (("send", "destination"), ("recv", "source")):
        is_one = (rows["collective"] == kind) & rows[column].is_null()
        peers: list[int | None] = [None] * rows.height
        own = np.flatnonzero(is_one.to_numpy())
        if own.size:
            told = _peers_by_call(trace, kind, rows["start"].to_numpy()[own])
            for at, peer in zip(own.tolist(), told, strict=True):
                peers[at] = peer
        given[column] = peers
    ranks = _ranks_in_job(trace, {peer for peers in given.values() for peer in peers})
    is_message = {
        "destination": pl.col("collective") == "send",
        "source": pl.col("collective") == "recv",
    }
    return rows.with_columns(
        pl.when(is_message[column])
        .then(pl.col(column).fill_null(pl.Series([ranks[peer] for peer in peers], dtype=pl.Int64)))
        .otherwise(column)
        .alias(column)
        for column, peers in given.items()
    )


def _peers_by_call(trace: Trace, kind: str, starts: Ints) -> list[int | None]:
    """Returns the rank in its group that each message goes to or comes from; None if unknown."""
    host = slices_on(trace, "host")
    calls = host.filter(host["name"].cast(pl.String) == _CALL_OF_MESSAGE[kind]).sort("start")
    if not calls.height:
        return [None] * starts.size
    order = np.argsort(starts, kind="stable")
    at = np.searchsorted(calls["start"].to_numpy(), starts, side="right") - 1
    if calls.height == starts.size:  # a message may begin while a later one is called for
        at[order] = np.arange(starts.size)
    told = slices_with_arguments(trace, "op_args", calls.select("id"), "concrete_inputs")
    peers = [_peer_in_group(text) for text in told["concrete_inputs"].cast(pl.String).to_list()]
    return [peers[call] if call >= 0 else None for call in at.tolist()]


def _peer_in_group(inputs: str | None) -> int | None:
    try:
        values = json.loads(inputs or "")
        peer = int(values[_POSITION_OF_PEER])
    except (ValueError, TypeError, IndexError, RecursionError):
        return None
    return peer if peer >= 0 else None


def _ranks_in_job(trace: Trace, peers: set[int | None]) -> dict[int | None, int | None]:
    """Returns the rank in the job of each number of a rank within the group that sends messages.

    That group is one in which all of them are other ranks than this one: which one is not recorded.
    A number that would be one rank in one of these groups and another in another is unknown. What
    is not recorded, as in a recording without shapes, is the only other rank of a job of two.
    """
    known = {peer for peer in peers if peer is not None}
    groups = process_groups(trace)
    own, size = rank_and_size(trace)
    only = 1 - own if own in {0, 1} and size == 2 else None
    if not groups.height:  # the program has but one
        return {None: only} | {peer: peer for peer in known}
    possible = [
        (ranks, description or "")
        for text, description in groups.select("ranks", "description").iter_rows()
        if max(known, default=0) < len(ranks := _listed_ranks(text))
        and own not in {ranks[peer] for peer in known}
    ]
    named = [ranks for ranks, text in possible if parallel_axes_of_group(text) == "PP"]
    every = named or [ranks for ranks, _ in possible]
    told = {peer: {ranks[peer] for ranks in every} for peer in known}
    sure = {peer: ranks.pop() if len(ranks) == 1 else None for peer, ranks in told.items()}
    return {None: only} | sure


def _listed_ranks(text: str | None) -> list[int]:
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        return []
    is_list = isinstance(found, list) and all(type(rank) is int for rank in found)
    return found if is_list else []
