"""Build the tables of a trace, as `schema` declares them, from a file's columns."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import schema
from selftime.arrays import SignedInts
from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.repair_report import event_table, repair_table
from selftime.ingest.events.assemble import FileColumns, assemble
from selftime.ingest.events.columns import GROUPS, Columns
from selftime.ingest.events.event import NO_INT
from selftime.ingest.events.operator_columns import erase_invalid_shapes, split_overloads
from selftime.ingest.facts import recorded_operator_facts
from selftime.ingest.links.lines import operator_lines
from selftime.ingest.links.link import Links, forward_of, link_rows
from selftime.ingest.links.ordering import OrderedSlices, home_threads, order_slices
from selftime.ingest.text.document import Document
from selftime.ingest.text.header import device_row_numbers, device_table, epoch_origin
from selftime.ingest.times.clock import normalize_times
from selftime.nesting import NONE, innermost_at, nearest
from selftime.trace import Trace

_LONGEST_LABEL: Final = 1000
"""The most characters kept of a process's name and labels, which each of its tracks repeats."""
_RENAMED: Final = {"group_sequence": "sequence", "sync_kind": "kind"}


def build_trace(document: Document, container_faults: list[Fault], source: str) -> Trace:
    """Returns the trace of a parsed file."""
    return build_trace_and_order(document, container_faults, source)[0]


def build_trace_and_order(
    document: Document, container_faults: list[Fault], source: str
) -> tuple[Trace, OrderedSlices]:
    """Returns the trace of a parsed file, and the order of its slices in the file."""
    columns = assemble(document.chunks, home_threads(document.metadata))
    normalize_times(columns, document.metadata)
    erase_invalid_shapes(columns)
    slices = order_slices(columns)
    links = link_rows(slices, columns)
    marks = {  # before the tracks: an instant may be on a thread without a slice
        "memory": _memory(columns, slices, links),
        "instants": _instants(columns, slices),
        "counters": _counters(columns, slices),
    }
    tracks = _tracks(columns, slices)
    ops = _op_args(columns, slices, links, document.metadata)
    rows, ops = split_overloads(_slices(columns, slices, links), ops)
    frames = _frame_args(columns, slices, links)
    tables = {
        "tracks": tracks,
        **marks,
        "compiled_args": _args("compiled", columns, slices),
        "call_args": _call_args(columns, slices, links),
        "device_args": _device_args(columns, slices, links, document.metadata),
        "collective_args": _collective_args(columns, slices, links),
        "sync_args": _sync_args(columns, slices),
        "clipped": _clipped(slices),
        "events": event_table(columns.phases),
        "repairs": repair_table(document, columns, links, container_faults),
    }
    del columns, links  # the tables hold the data now: free the memory
    trace = Trace(
        slices=rows,
        op_args=ops,
        frame_args=frames,
        devices=device_table(document.metadata),
        lines=operator_lines(document.metadata, rows, ops, frames),
        **tables,
        metadata=MappingProxyType(document.metadata),
        origin=epoch_origin(document.metadata, slices.origin),
        source=source,
    )
    return trace, slices


def _frame(table: schema.Table, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Returns a table from arrays; a column without an array is null in every row."""
    height = len(columns[table.columns[0].name])
    series = {
        column.name: _series(columns.get(column.name), column, height) for column in table.columns
    }
    return pl.DataFrame(series)


def _series(values: Any, column: schema.Column, height: int) -> pl.Series:
    if values is None:
        return pl.repeat(None, height, dtype=column.dtype, eager=True)
    if isinstance(values, pl.Series):
        return values.cast(column.dtype).alias(column.name)
    if values.ndim == 2:
        known = values[:, 0] >= 0
        series = pl.Series(column.name, values.astype(np.int32), dtype=pl.Array(pl.Int32, 3))
        return series if known.all() else series.set(pl.Series(~known), None)
    return _nullable(values, column)


def _nullable(values: NDArray[Any], column: schema.Column) -> pl.Series:
    """Returns a numeric column; the sentinel values for unknown become null."""
    if values.dtype.kind == "i" and column.nullable:
        lowest = 0 if column.dtype == pl.UInt32 else NO_INT + 1
        unknown = values < lowest
        series = pl.Series(column.name, values)
        if unknown.any():
            series = series.set(pl.Series(unknown), None)
        return series.cast(column.dtype, strict=False)
    series = pl.Series(column.name, values)
    if values.dtype == np.float64:
        series = series.fill_nan(None)
    return series.cast(column.dtype, strict=False)


def _slices(columns: FileColumns, slices: OrderedSlices, links: Links) -> pl.DataFrame:
    unknown = ~slices.known_end
    duration = np.where(unknown, NO_INT, slices.end - slices.start)
    return _frame(
        schema.SLICES,
        {
            "id": np.arange(slices.start.size, dtype=np.uint32),
            "category": columns.text(slices.category),
            "name": columns.text(slices.name),
            "track": slices.track.astype(np.uint32),
            "start": slices.start,
            "duration": duration,
            "parent": slices.parent,
            "depth": np.minimum(slices.depth, np.iinfo(np.uint16).max).astype(np.uint16),
            "self": np.where(unknown, NO_INT, slices.self_time),
            "launch": links.launch,
        },
    )


def _tracks(columns: FileColumns, slices: OrderedSlices) -> pl.DataFrame:
    threads = {(pid, tid): text for kind, pid, tid, text in columns.labels if kind == "thread_name"}
    told: dict[str, dict[str, None]] = {}
    for kind, pid, _, text in columns.labels:
        if kind in {"process_name", "process_labels"}:
            told.setdefault(pid, {})[text] = None
    processes = {pid: ", ".join(texts)[:_LONGEST_LABEL] for pid, texts in told.items()}
    device = columns.groups.get("device", {})
    numbers = _device_and_stream(device, slices)
    rows = []
    for number, (thread, kind) in enumerate(slices.tracks):
        pid, tid = columns.threads[thread]
        where, stream = numbers.get(number, (None, None)) if kind == "device" else (None, None)
        process = processes.get(pid) or None
        rows.append(
            (number, kind, thread, pid, tid, threads.get((pid, tid)), process, where, stream)
        )
    return pl.DataFrame(rows, schema=dict(schema.TRACKS.dtypes), orient="row")


def _device_and_stream(
    device: Columns, slices: OrderedSlices
) -> dict[int, tuple[int | None, int | None]]:
    """Returns device and stream of each device track, from the first slice that has them."""
    if not device:
        return {}
    track = slices.track[slices.place[device["row"]]]
    found, first = np.unique(track, return_index=True)
    pairs = zip(device["device"][first].tolist(), device["stream"][first].tolist(), strict=True)
    told = [tuple(None if n == NO_INT else n for n in pair) for pair in pairs]
    return {int(t): (pair[0], pair[1]) for t, pair in zip(found, told, strict=True)}


def _args(group: str, columns: FileColumns, slices: OrderedSlices, **more: Any) -> pl.DataFrame:
    """Returns a group's argument table sorted by slice; its columns are freed as they are read.

    `more` holds columns that come from linking slices.
    """
    table = schema.TABLES[f"{group}_args"]
    found = columns.groups.pop(group, None)
    if found is None or not found["row"].size:
        return table.empty()
    place = slices.place[found["row"]]
    order = np.argsort(place, kind="stable")
    declared = {column.name: column for column in table.columns}
    filled: dict[str, Any] = {"id": place[order].astype(np.uint32)}
    for spec in GROUPS[group]:
        values, name = found.pop(spec.name), _RENAMED.get(spec.name, spec.name)
        if name in declared:
            told = columns.text(values[order]) if spec.kind == "text" else values[order]
            filled[name] = _series(told, declared[name], order.size)
    for name, values in more.items():
        filled[name] = values[order] if isinstance(values, np.ndarray) else values.gather(order)
    return _frame(table, filled)


def _slice_numbers(group: str, columns: FileColumns, slices: OrderedSlices) -> SignedInts:
    found = columns.groups.get(group)
    return slices.place[found["row"]] if found else np.empty(0, np.int64)


def _op_args(
    columns: FileColumns, slices: OrderedSlices, links: Links, metadata: Mapping[str, Any]
) -> pl.DataFrame:
    ops = columns.groups.get("op")
    if ops is None:
        return schema.OP_ARGS.empty()
    at = _slice_numbers("op", columns, slices)
    return _args(
        "op",
        columns,
        slices,
        forward=forward_of(slices, ops, columns),
        frame=links.frame[at],
        module=links.module[at],
        **recorded_operator_facts(metadata, ops["external_id"]),
    )


_NOT_A_STREAM: Final = (-1, 0xFFFF_FFFF)
"""Stream numbers that mean no stream or all streams, as signed and unsigned integers."""
_SYNC_STREAM_OFFSET: Final = 1_000_000
"""Offset that Kineto adds to the stream number of tracks that show only waits."""


def _sync_args(columns: FileColumns, slices: OrderedSlices) -> pl.DataFrame:
    found = _args("sync", columns, slices)
    if not found.height:
        return found
    stream = pl.col("stream")
    own = (
        pl.when(stream >= _SYNC_STREAM_OFFSET).then(stream - _SYNC_STREAM_OFFSET).otherwise(stream)
    )
    return found.with_columns(
        stream=pl.when(~stream.is_in(_NOT_A_STREAM)).then(own),
        waits_on_stream=pl.when(~pl.col("waits_on_stream").is_in(_NOT_A_STREAM)).then(
            "waits_on_stream"
        ),
    )


def _call_args(columns: FileColumns, slices: OrderedSlices, links: Links) -> pl.DataFrame:
    at = _slice_numbers("call", columns, slices)
    linked = {"operator": links.operator[at], "frame": links.frame[at]}
    return _args("call", columns, slices, **linked)


def _frame_args(columns: FileColumns, slices: OrderedSlices, links: Links) -> pl.DataFrame:
    return _args(
        "frame", columns, slices, caller=links.caller[_slice_numbers("frame", columns, slices)]
    )


def _device_args(
    columns: FileColumns, slices: OrderedSlices, links: Links, metadata: Mapping[str, Any]
) -> pl.DataFrame:
    found = columns.groups.get("device")
    if found is None:
        return schema.DEVICE_ARGS.empty()
    return _args(
        "device",
        columns,
        slices,
        operator=links.operator[_slice_numbers("device", columns, slices)],
        properties=device_row_numbers(metadata, found["device"]),
    )


def _collective_args(columns: FileColumns, slices: OrderedSlices, links: Links) -> pl.DataFrame:
    at = _slice_numbers("collective", columns, slices)
    if not at.size:
        return schema.COLLECTIVE_ARGS.empty()
    records = np.zeros(slices.start.size, bool)
    records[at[slices.is_kind("host")[at]]] = True
    record = np.where(
        slices.is_kind("device")[at], nearest(slices.parent, records, links.operator[at]), NONE
    )
    return _args("collective", columns, slices, record=record)


def _memory(columns: FileColumns, slices: OrderedSlices, links: Links) -> pl.DataFrame:
    found = columns.groups.get("memory")
    if found is None or not found["time"].size:
        return schema.MEMORY.empty()
    order = np.argsort(found["time"], kind="stable")
    memory = {name: column[order] for name, column in found.items()}
    time = np.where(memory["time"] == NO_INT, 0, memory["time"] - slices.origin)
    tracks = _host_tracks(slices, memory["thread"])
    filled: dict[str, Any] = {
        **memory,
        "time": time,
        "track": tracks.astype(np.uint32),
        "operator": _operators_at(slices, links, tracks, time),
        "address": pl.Series(memory["address"]).replace(0, None),
    }
    return _frame(schema.MEMORY, filled)


def _host_tracks(slices: OrderedSlices, thread: NDArray[Any]) -> SignedInts:
    """Returns the host track of each thread; a thread without one gets a new track."""
    host = {where: number for number, (where, kind) in enumerate(slices.tracks) if kind == "host"}
    for where in np.unique(thread).tolist():
        if where not in host:
            host[where] = len(slices.tracks)
            slices.tracks.append((where, "host"))
    return np.array([host[where] for where in thread.tolist()], np.int64)


def _operators_at(
    slices: OrderedSlices, links: Links, tracks: SignedInts, time: SignedInts
) -> SignedInts:
    """Returns the innermost operator on each track at each time; `NONE` where there is none."""
    found = np.full(time.size, NONE, np.int64)
    host = np.flatnonzero(slices.is_kind("host"))
    for track in np.unique(tracks):
        on_track = host[slices.track[host] == track]
        order = np.argsort(slices.start[on_track], kind="stable")
        on_track = on_track[order]
        place = np.full(slices.start.size, NONE, np.int64) if on_track.size else on_track
        if not on_track.size:
            continue
        place[on_track] = np.arange(on_track.size)
        above = slices.parent[on_track]
        local = np.where(above == NONE, NONE, place[above])
        asked = np.flatnonzero(tracks == track)
        inner = innermost_at(slices.start[on_track], slices.end[on_track], local, time[asked])
        found[asked] = np.where(inner == NONE, NONE, links.operator[on_track[inner]])
    return found


def _instants(columns: FileColumns, slices: OrderedSlices) -> pl.DataFrame:
    found = columns.groups.get("instants")
    if found is None or not found["time"].size:
        return schema.INSTANTS.empty()
    known = found["time"] != NO_INT
    filled: dict[str, Any] = {
        "time": np.where(known, found["time"] - slices.origin, 0),
        "track": _host_tracks(slices, found["thread"]).astype(np.uint32),
        "category": columns.text(found["category"]),
        "name": columns.text(found["name"]),
    }
    return _frame(schema.INSTANTS, filled).sort("time", maintain_order=True)


def _counters(columns: FileColumns, slices: OrderedSlices) -> pl.DataFrame:
    if not columns.counters:
        return schema.COUNTERS.empty()
    places = {thread: place for place, thread in enumerate(columns.threads)}
    threads = np.array([places[thread] for _, thread, *_ in columns.counters], np.int64)
    tracks = _host_tracks(slices, threads)
    rows = [
        (0 if time == NO_INT else time - slices.origin, int(track), name, series, value)
        for (time, _, name, series, value), track in zip(columns.counters, tracks, strict=True)
    ]
    table = pl.DataFrame(rows, schema=dict(schema.COUNTERS.dtypes), orient="row")
    return table.with_columns(pl.col("value").fill_nan(None)).sort("time", maintain_order=True)


def _clipped(slices: OrderedSlices) -> pl.DataFrame:
    at, start, end = slices.clipped
    return _frame(
        schema.CLIPPED, {"id": at.astype(np.uint32), "start": start, "duration": end - start}
    )
