"""The process groups that a rank is in, as the header of its trace lists them."""

from typing import Final

import polars as pl

from selftime import names
from selftime.trace import Trace

_SCHEMA: Final = {
    "group": pl.String,
    "description": pl.String,
    "backend": pl.String,
    "size": pl.Int64,
    "ranks": pl.String,
}


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
