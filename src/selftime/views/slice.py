"""All that a trace tells of one slice, and what it hangs together with."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from selftime.analysis.device.kernel_attributes import with_grids
from selftime.analysis.device.work import device_durations
from selftime.analysis.sites import SITE, sites
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.analysis.timeline import related_slices, slice_lanes
from selftime.errors import UsageError
from selftime.schema import TABLES, Column
from selftime.trace import Trace
from selftime.units import Unit
from selftime.views.base import view

_NONE: Final = -1
"""No slice."""
_MOST_LINKS: Final = 64
"""Of a kind; an operator may have launched thousands of kernels."""
_PLACE: Final = ("device", "stream")
_GRID: Final[dict[str, tuple[str, Unit]]] = {
    "grid": ("grid", "text"),
    "block": ("block", "text"),
    "registers": ("registers", "count"),
    "shared_memory": ("shared memory", "bytes"),
    "blocks_per_sm": ("blocks per SM", "count"),
    "warps_per_sm": ("warps per SM", "count"),
    "occupancy": ("occupancy", "percent"),
    "graph": ("graph", "id"),
}
_TOLD: Final = {
    "op_args": "arguments",
    "call_args": "arguments",
    "compiled_args": "compiled",
    "collective_args": "collective",
    "sync_args": "wait",
    "frame_args": "frame",
}
"""The tables of arguments, and the group that each is told in."""
_LINKED: Final = frozenset(
    {"id", "frame", "module", "forward", "operator", "caller", "record", "forward_thread"}
)
"""Columns that lead to other slices."""
_COPY: Final = ("bytes", "bandwidth", "kind")


class _Fact(NamedTuple):
    """A row: what is told, or another slice that this one leads to."""

    group: str
    key: str
    value: str | None
    unit: Unit
    slice: int | None = None


@view(
    Column("group", pl.String, "name", "What it belongs to, such as slice, where or links."),
    Column("key", pl.String, "name", "What is told; of a link how the other slice is related."),
    Column("value", pl.String, "text", "What it is; of a link the other slice's name.", True),
    Column("unit", pl.String, "name", "The unit of the value, as columns have them."),
    Column("slice", pl.UInt32, "id", "The slice, or the one that a link leads to.", True),
    Column("start", pl.Int64, "instant", "When that slice began.", True),
    Column("duration", pl.Int64, "ns", "How long that slice lasted.", True),
    Column("track", pl.UInt32, "id", "The track that it lies on.", True),
    Column("row", pl.Int64, "id", "The row of that track in the timeline.", True),
)
def slice(trace: Trace, *, id: int = _NONE) -> pl.DataFrame:  # noqa: A001, A002 - the view's names
    """All that is known of the slice with this `id`; -1 is none.

    Groups: slice (name, category, times, step, process, thread or stream), where (source line),
    arguments (of an operator or call), frame, launch (how a kernel was launched), copy, collective,
    compiled, wait, and links: other slices and how they are related. These are launch and operator
    of device work, device work that it launched, forward, backward, parent, child (the first),
    previous and next on its row of the timeline, what it waits for and whose wait it ends.
    """
    if id == _NONE:
        return _table(trace, [])
    if not 0 <= id < trace.slices.height:
        raise UsageError(
            f"`id` is `{id}`, which is no slice; they are numbered from 0 to below"
            f" {trace.slices.height}"
        )
    return _table(
        trace,
        [
            *_itself(trace, id),
            *_site(trace, id),
            *_arguments(trace, id),
            *_device(trace, id),
            *_links(trace, id),
        ],
    )


def _itself(trace: Trace, number: int) -> Iterator[_Fact]:
    row = trace.slices.row(number, named=True)
    track = trace.tracks.filter(pl.col("id") == row["track"]).row(0, named=True)
    yield _Fact("slice", "name", str(row["name"]), "name", number)
    yield _Fact("slice", "category", str(row["category"]), "name")
    yield from _told("slice", "duration", row["duration"], "ns")
    possible = device_durations(trace)[number]
    if possible != row["duration"]:
        yield from _told("slice", "at most", possible, "ns")
    yield from _told("slice", "self", row["self"], "ns")
    yield from _told("slice", "start", row["start"], "instant")
    yield from _told("slice", "step", _step(trace, row), "id")
    yield from _told("slice", "process", track["process_name"] or track["process"], "text")
    yield from _told("slice", "thread", track["name"] or track["tid"], "text")
    for place in _PLACE:
        yield from _told("slice", place, track[place], "id")


def _step(trace: Trace, row: dict[str, Any]) -> int | None:
    """The step in which it began; device work that in which it was launched."""
    steps = assessed_steps(trace)
    begun = row["start"] if row["launch"] is None else trace.slices["start"][row["launch"]]
    at = int(np.searchsorted(steps["start"].to_numpy(), begun, side="right")) - 1
    return steps["number"][at] if at >= 0 and begun < steps["end"][at] else None


def _site(trace: Trace, number: int) -> Iterator[_Fact]:
    site = sites(trace, pl.Series([number], dtype=pl.UInt32)).row(0, named=True)
    for column in SITE:
        yield from _told("where", column, site[column], "id" if column == "line" else "text")


def _arguments(trace: Trace, number: int) -> Iterator[_Fact]:
    """What the tables of arguments hold of it, but what leads to other slices."""
    tables = trace.tables()
    for name, group in _TOLD.items():
        row = _row(tables[name], number)
        for column in TABLES[name].columns:
            if column.name not in _LINKED and row is not None:
                yield from _told(group, _words(column.name), row[column.name], column.unit)


def _row(table: pl.DataFrame, number: int) -> dict[str, Any] | None:
    """The row of a slice in a table of arguments."""
    rows = table.filter(pl.col("id") == number).head(1)
    return rows.row(0, named=True) if rows.height else None


def _device(trace: Trace, number: int) -> Iterator[_Fact]:
    """How device work was launched, or what it copied."""
    one = trace.device_args.filter(pl.col("id") == number)
    if not one.height:
        return
    launched = with_grids(replace(trace, device_args=one), one.select("id")).row(0, named=True)
    for column, (words, unit) in _GRID.items():
        yield from _told("launch", words, launched[column], unit)
    row = one.row(0, named=True)
    for told in TABLES["device_args"].columns:
        if told.name in _COPY:
            yield from _told("copy", told.name, row[told.name], told.unit)


def _links(trace: Trace, number: int) -> Iterator[_Fact]:
    text = trace.slices["name"]
    for key, other in related_slices(trace, number, _MOST_LINKS):
        yield _Fact("links", key, str(text[other]), "name", other)


def _told(group: str, key: str, value: Any, unit: Unit) -> Iterator[_Fact]:
    """A fact, if it is known."""
    if value is None or value == "":
        return
    written = str(value).lower() if isinstance(value, bool) else str(value)
    yield _Fact(group, key, written, unit)


def _words(column: str) -> str:
    return column.replace("_", " ")


def _table(trace: Trace, facts: list[_Fact]) -> pl.DataFrame:
    """The facts with where the slices lie that they lead to."""
    rows = pl.DataFrame(facts, schema=_SCHEMA, orient="row")
    at = rows["slice"]
    index = slice_lanes(trace)
    lane = index.lane[at.drop_nulls().to_numpy()]
    row = pl.Series(index.lanes.row[lane], dtype=pl.Int64)
    known = at.is_not_null().arg_true()
    where = pl.Series("row", [None] * rows.height, dtype=pl.Int64).scatter(known, row)
    return rows.with_columns(
        *(trace.slices[column].gather(at) for column in ("start", "duration", "track")), where
    ).select(pl.col(column.name).cast(column.dtype) for column in slice.columns)


_SCHEMA: Final = {
    "group": pl.String,
    "key": pl.String,
    "value": pl.String,
    "unit": pl.String,
    "slice": pl.UInt32,
}
