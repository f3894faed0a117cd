"""Traces of a folder that are there twice, such as one file plain and compressed."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

import polars as pl

from selftime.trace import Trace

_NONE: Final = -(1 << 63)
"""Stands for an unknown number."""


def content_of(trace: Trace) -> str:
    """A digest of what a trace holds, the same wherever and however often it is taken.

    It is of the header, the number of rows of each table, every time, every amount of memory, and
    how often there is each name.
    """
    counted = trace.slices["name"].cast(pl.String).value_counts().sort("name").rows()
    rows = {name: table.height for name, table in trace.tables().items()}
    told = [dict(trace.metadata), trace.origin, rows, counted]
    digest = blake2b(json.dumps(told, sort_keys=True, default=str).encode(), digest_size=16)
    for column in (*trace.slices["start", "duration"], *trace.memory["time", "bytes"]):
        digest.update(column.fill_null(_NONE).rechunk().to_numpy().data)
    return digest.hexdigest()


def doubles(contents: Mapping[str, str]) -> dict[str, str]:
    """Why to leave out each path whose content another path has before it."""
    firsts: dict[str, str] = {}
    why: dict[str, str] = {}
    for path, content in contents.items():
        first = firsts.setdefault(content, path)
        if first != path:
            why[path] = f"`{path}` holds the same trace as `{first}`: it is counted once"
    return why
