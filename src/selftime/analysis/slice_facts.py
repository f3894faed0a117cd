"""Lists everything that a trace contains about one slice, and the slices related to it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.device.kernel_attributes import with_launch_configurations
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.analysis.timeline import device_work_of_slice, related_slices, slice_lanes
from selftime.schema import TABLES
from selftime.trace import Trace
from selftime.units import Unit

_MAX_LISTED_LINKS_PER_KIND: Final = 64
"""Largest number of related slices listed per relation; an operator may launch thousands of
kernels.
"""

_DEVICE_AND_STREAM_COLUMNS: Final = ("device", "stream")

_LABEL_AND_UNIT_BY_LAUNCH_COLUMN: Final[dict[str, tuple[str, Unit]]] = {
    "grid": ("grid", "text"),
    "block": ("block", "text"),
    "registers": ("registers", "count"),
    "shared_memory": ("shared memory", "bytes"),
    "blocks_per_sm": ("blocks per SM", "count"),
    "warps_per_sm": ("warps per SM", "count"),
    "occupancy": ("occupancy", "percent"),
    "graph": ("graph", "id"),
}

_FACT_GROUP_BY_ARGUMENT_TABLE: Final = {
    "op_args": "arguments",
    "call_args": "arguments",
    "compiled_args": "compiled",
    "collective_args": "collective",
    "sync_args": "wait",
    "frame_args": "frame",
}
"""Maps a table of arguments to the group of facts to which its values belong."""

_SLICE_REFERENCE_COLUMNS: Final = frozenset(
    {"id", "frame", "module", "forward", "operator", "caller", "record", "forward_thread"}
)
"""Columns with ids of other slices; these are listed as related slices, not as values."""

_COPY_FACT_COLUMNS: Final = ("bytes", "bandwidth", "kind")

_SLICE_FACT_SCHEMA: Final = {
    "group": pl.String,
    "key": pl.String,
    "value": pl.String,
    "unit": pl.String,
    "slice": pl.UInt32,
}


def facts_of_slice(trace: Trace, slice_id: int) -> pl.DataFrame:
    """Returns one row per known value of a slice, and per slice that is related to it."""
    return _table_of_slice_facts(
        trace,
        [
            *_slice_facts(trace, slice_id),
            *_source_line_facts(trace, slice_id),
            *_argument_facts(trace, slice_id),
            *_device_work_facts(trace, slice_id),
            *_facts_of_launched_work(trace, slice_id),
            *_linked_slice_facts(trace, slice_id),
        ],
    )


class _RowOfSliceFact(NamedTuple):
    """One fact about a slice: a value of the slice, or a related slice."""

    group: str
    key: str
    value: str | None
    unit: Unit
    slice: int | None = None


def _slice_facts(trace: Trace, slice_id: int) -> Iterator[_RowOfSliceFact]:
    row = trace.slices.row(slice_id, named=True)
    track = trace.tracks.filter(pl.col("id") == row["track"]).row(0, named=True)
    yield _RowOfSliceFact("slice", "name", str(row["name"]), "name", slice_id)
    yield _RowOfSliceFact("slice", "category", str(row["category"]), "name")
    yield from _fact_if_value_known("slice", "duration", row["duration"], "ns")
    possible = slice_durations_without_impossible(trace)[slice_id]
    if possible != row["duration"]:
        yield from _fact_if_value_known("slice", "at most", possible, "ns")
    yield from _fact_if_value_known("slice", "self", row["self"], "ns")
    yield from _fact_if_value_known("slice", "start", row["start"], "instant")
    yield from _fact_if_value_known("slice", "step", _step_number_of_slice(trace, row), "id")
    yield from _fact_if_value_known(
        "slice", "process", track["process_name"] or track["process"], "text"
    )
    yield from _fact_if_value_known("slice", "thread", track["name"] or track["tid"], "text")
    for place in _DEVICE_AND_STREAM_COLUMNS:
        yield from _fact_if_value_known("slice", place, track[place], "id")


def _step_number_of_slice(trace: Trace, slice_row: dict[str, Any]) -> int | None:
    """Returns the number of the step in which a slice began; for device work, was launched."""
    steps = steps_with_counted_flags(trace)
    begun = (
        slice_row["start"]
        if slice_row["launch"] is None
        else trace.slices["start"][slice_row["launch"]]
    )
    at = int(np.searchsorted(steps["start"].to_numpy(), begun, side="right")) - 1
    return steps["number"][at] if at >= 0 and begun < steps["end"][at] else None


def _source_line_facts(trace: Trace, slice_id: int) -> Iterator[_RowOfSliceFact]:
    site = source_sites_of_slices(trace, pl.Series([slice_id], dtype=pl.UInt32)).row(0, named=True)
    for column in SOURCE_SITE_COLUMNS:
        yield from _fact_if_value_known(
            "where", column, site[column], "id" if column == "line" else "text"
        )


def _argument_facts(trace: Trace, slice_id: int) -> Iterator[_RowOfSliceFact]:
    """Yields rows for a slice's recorded arguments, except for references to other slices."""
    tables = trace.tables()
    for name, group in _FACT_GROUP_BY_ARGUMENT_TABLE.items():
        row = _argument_row_of_slice(tables[name], slice_id)
        for column in TABLES[name].columns:
            if column.name not in _SLICE_REFERENCE_COLUMNS and row is not None:
                yield from _fact_if_value_known(
                    group, _label_of_argument_column(column.name), row[column.name], column.unit
                )


def _argument_row_of_slice(table: pl.DataFrame, slice_id: int) -> dict[str, Any] | None:
    """Returns a slice's row in a table of arguments; None if the table has no such row."""
    rows = table.filter(pl.col("id") == slice_id).head(1)
    return rows.row(0, named=True) if rows.height else None


def _device_work_facts(trace: Trace, slice_id: int) -> Iterator[_RowOfSliceFact]:
    """Yields a kernel's launch configuration (grid, block, registers), or a copy's size."""
    one = trace.device_args.filter(pl.col("id") == slice_id)
    if not one.height:
        return
    launched = with_launch_configurations(replace(trace, device_args=one), one.select("id")).row(
        0, named=True
    )
    for column, (words, unit) in _LABEL_AND_UNIT_BY_LAUNCH_COLUMN.items():
        yield from _fact_if_value_known("launch", words, launched[column], unit)
    row = one.row(0, named=True)
    for told in TABLES["device_args"].columns:
        if told.name in _COPY_FACT_COLUMNS:
            yield from _fact_if_value_known("copy", told.name, row[told.name], told.unit)


def _facts_of_launched_work(trace: Trace, slice_id: int) -> Iterator[_RowOfSliceFact]:
    """Yields how much device work a slice of the host launched, and when the last of it ends."""
    work = device_work_of_slice(trace, slice_id)
    if not work.height:
        return
    begin, end = covered_time(work)
    yield _RowOfSliceFact("device work", "count", str(work.height), "count")
    yield _RowOfSliceFact("device work", "busy", str(int((end - begin).sum())), "ns")
    yield from _fact_if_value_known("device work", "begin", work["start"].min(), "instant")
    yield from _fact_if_value_known("device work", "end", work["end"].max(), "instant")


def _linked_slice_facts(trace: Trace, slice_id: int) -> Iterator[_RowOfSliceFact]:
    text = trace.slices["name"]
    for key, other in related_slices(trace, slice_id, _MAX_LISTED_LINKS_PER_KIND):
        yield _RowOfSliceFact("links", key, str(text[other]), "name", other)


def _fact_if_value_known(group: str, key: str, value: Any, unit: Unit) -> Iterator[_RowOfSliceFact]:
    """Yields a row with a value of a slice; nothing if the value is None or an empty text."""
    if value is None or value == "":
        return
    written = str(value).lower() if isinstance(value, bool) else str(value)
    yield _RowOfSliceFact(group, key, written, unit)


def _label_of_argument_column(column: str) -> str:
    return column.replace("_", " ")


def _table_of_slice_facts(trace: Trace, facts: list[_RowOfSliceFact]) -> pl.DataFrame:
    """Returns the rows as a table, with the start, track and timeline row of related slices."""
    rows = pl.DataFrame(facts, schema=_SLICE_FACT_SCHEMA, orient="row")
    at = rows["slice"]
    index = slice_lanes(trace)
    lane = index.lane[at.drop_nulls().to_numpy()]
    row = pl.Series(index.lanes.row[lane], dtype=pl.Int64)
    known = at.is_not_null().arg_true()
    where = pl.Series("row", [None] * rows.height, dtype=pl.Int64).scatter(known, row)
    return rows.with_columns(
        *(trace.slices[column].gather(at) for column in ("start", "duration", "track")), where
    )
