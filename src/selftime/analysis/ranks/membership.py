"""The process groups that a rank is in, as the header of its trace lists them."""

from typing import Final, NamedTuple

import polars as pl

from selftime import names
from selftime.names import process_number
from selftime.trace import Trace

_SCHEMA: Final = {
    "group": pl.String,
    "description": pl.String,
    "backend": pl.String,
    "size": pl.Int64,
    "ranks": pl.String,
}


class Place(NamedTuple):
    """Which process of how many; None where the recording does not tell."""

    rank: int | None = None
    size: int | None = None


def place(trace: Trace) -> Place:
    """Rank and number of processes, from `distributedInfo`; a size that cannot be is unknown."""
    told = trace.metadata.get("distributedInfo")
    if not isinstance(told, dict):
        return Place()
    rank, size = (process_number(told.get(key)) for key in ("rank", "world_size"))
    return Place(rank, size if size and size > (rank or 0) else None)


def groups(trace: Trace) -> pl.DataFrame:
    """One row a group; columns: group, description, backend, size, ranks, each null if untold."""
    info = trace.metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, dict) else None
    told = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    rows = [
        (
            _text(group.get("pg_name", group.get("uid"))),
            _text(group.get("pg_desc")),
            _text(group.get("backend_config")),
            names.process_number(group.get("pg_size")),
            _text(group.get("ranks")),
        )
        for group in told
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _text(told: object) -> str | None:
    return None if told is None else str(told)
