"""Reads the rank of a process, and its process groups, from the header of its trace."""

from typing import Final, NamedTuple

import polars as pl

from selftime import names
from selftime.names import parse_rank_number
from selftime.trace import Trace

_PROCESS_GROUP_SCHEMA: Final = {
    "group": pl.String,
    "description": pl.String,
    "backend": pl.String,
    "size": pl.Int64,
    "ranks": pl.String,
}


class RankAndSize(NamedTuple):
    """The rank of a process and the number of ranks; None where the recording lacks them."""

    rank: int | None = None
    size: int | None = None


def rank_and_size(trace: Trace) -> RankAndSize:
    """Returns a trace's rank and number of ranks; None where its header lacks them."""
    told = trace.metadata.get("distributedInfo")
    if not isinstance(told, dict):
        return RankAndSize()
    rank, size = (parse_rank_number(told.get(key)) for key in ("rank", "world_size"))
    return RankAndSize(rank, size if size and size > (rank or 0) else None)


def process_groups(trace: Trace) -> pl.DataFrame:
    """Returns the process groups in a trace's header, one row each: name, backend, size, ranks."""
    info = trace.metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, dict) else None
    told = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    rows = [
        (
            _non_empty_text_or_none(group.get("pg_name", group.get("uid"))),
            _non_empty_text_or_none(group.get("pg_desc")),
            _non_empty_text_or_none(group.get("backend_config")),
            names.parse_rank_number(group.get("pg_size")),
            _non_empty_text_or_none(group.get("ranks")),
        )
        for group in told
    ]
    return pl.DataFrame(rows, schema=_PROCESS_GROUP_SCHEMA, orient="row")


def _non_empty_text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
