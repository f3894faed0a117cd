"""Finds whom a rank sends messages to on the host, from the calls that send and receive them.

The annotation around a message that Gloo sends does not name the other rank; the call
`c10d::send(tensors, group, destination, tag)` does, and `c10d::recv_` alike. Both number ranks
within their process group.
"""

import json
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.ranks.rank_and_process_groups import process_groups
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
    found: dict[str, list[int | None]] = {}
    for kind, column in (("send", "destination"), ("recv", "source")):
        is_one = (rows["collective"] == kind) & rows[column].is_null()
        peers: list[int | None] = [None] * rows.height
        own = np.flatnonzero(is_one.to_numpy())
        if own.size:
            told = _peers_by_call(trace, kind, rows["start"].to_numpy()[own])
            for at, peer in zip(own.tolist(), told, strict=True):
                peers[at] = peer
        found[column] = peers
    return rows.with_columns(
        pl.col(column).fill_null(pl.Series(peers, dtype=pl.Int64))
        for column, peers in found.items()
    )


def _peers_by_call(trace: Trace, kind: str, starts: Ints) -> list[int | None]:
    """Returns the rank in the job that each message goes to or comes from; None if unknown."""
    host = slices_on(trace, "host")
    calls = host.filter(host["name"].cast(pl.String) == _CALL_OF_MESSAGE[kind]).sort("start")
    if not calls.height:
        return [None] * starts.size
    order = np.argsort(starts, kind="stable")
    at = np.searchsorted(calls["start"].to_numpy(), starts, side="right") - 1
    if calls.height == starts.size:  # a message may begin while a later one is called for
        at[order] = np.arange(starts.size)
    told = slices_with_arguments(trace, "op_args", calls.select("id"), "concrete_inputs")
    ranks = _ranks_of_pipeline(trace)
    peers = [
        _rank_in_job(ranks, _peer_in_group(text))
        for text in told["concrete_inputs"].cast(pl.String).to_list()
    ]
    return [peers[call] if call >= 0 else None for call in at.tolist()]


def _peer_in_group(inputs: str | None) -> int | None:
    try:
        values = json.loads(inputs or "")
        return int(values[_POSITION_OF_PEER])
    except (ValueError, TypeError, IndexError, RecursionError):
        return None


def _rank_in_job(ranks: list[int] | None, peer: int | None) -> int | None:
    """Returns the rank in the job of a rank in a group of `ranks`; None if that is unknown."""
    if peer is None or peer < 0:
        return None
    if ranks is None:
        return peer  # the trace lists no groups: the program has but one
    return ranks[peer] if peer < len(ranks) else None


def _ranks_of_pipeline(trace: Trace) -> list[int] | None:
    """Returns the ranks of the group that sends messages; empty if it is not clear which.

    None if the trace lists no groups.
    """
    groups = process_groups(trace)
    if not groups.height:
        return None
    lists = [
        (_listed_ranks(ranks), description or "")
        for ranks, description in groups.select("ranks", "description").iter_rows()
    ]
    named = [ranks for ranks, text in lists if parallel_axes_of_group(text) == "PP"]
    every = named or [ranks for ranks, _ in lists]
    return every[0] if all(ranks == every[0] for ranks in every) else []


def _listed_ranks(text: str | None) -> list[int]:
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        return []
    is_list = isinstance(found, list) and all(type(rank) is int for rank in found)
    return found if is_list else []
