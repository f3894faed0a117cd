"""Builds the tables of a trace, which `schema` declares, from the parsed events of a file."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import schema
from selftime.array_types import SignedInts
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.damage.repair_report import event_count_table, repair_table
from selftime.ingest.events.chunk_merging import FileEventColumns, merge_chunks
from selftime.ingest.events.columns import ARGUMENT_COLUMNS_BY_GROUP, Columns
from selftime.ingest.events.event_types import NO_INT
from selftime.ingest.events.operator_columns import erase_invalid_shapes, split_overloads_from_names
from selftime.ingest.links.operator_source_lines import source_lines_of_operators
from selftime.ingest.links.slice_links import SliceLinks, forward_operators, link_slices
from selftime.ingest.links.slice_ordering import (
    OrderedSlices,
    order_slices,
    original_thread_by_added_thread,
)
from selftime.ingest.notebook_cells import name_notebook_cells
from selftime.ingest.recorded_facts import recorded_operator_facts
from selftime.ingest.table_of_arrays import series_of_column, table_of_arrays
from selftime.ingest.text.trace_header import device_table, device_table_rows, origin_since_epoch
from selftime.ingest.text.trace_parsing import ParsedTrace
from selftime.ingest.times.time_normalization import normalize_times
from selftime.nesting import NO_SLICE, innermost_slice_at, nearest_ancestor
from selftime.trace import Trace

_MAX_LABEL_CHARACTERS: Final = 1000
"""Largest number of characters that are kept of a process's name and labels."""
_TABLE_COLUMN_BY_ARGUMENT: Final = {"group_sequence": "sequence", "sync_kind": "kind"}


def build_trace(
    parsed_trace: ParsedTrace,
    container_faults: list[FileFault],
    source: str,
    between_stages: Callable[[], None] = lambda: None,
) -> Trace:
    """Returns the `Trace` built from the parsed text of a file.

    Args:
        parsed_trace: The parsed text.
        container_faults: Faults of the file around the text, such as of its compression.
        source: The path of the file.
        between_stages: Called after each part of the work; it may raise an error to end it.
    """
    return build_trace_and_order(parsed_trace, container_faults, source, between_stages)[0]


def build_trace_and_order(
    parsed_trace: ParsedTrace,
    container_faults: list[FileFault],
    source: str,
    between_stages: Callable[[], None] = lambda: None,
) -> tuple[Trace, OrderedSlices]:
    """Returns the `Trace` built from a file's parsed text, and its slices sorted by start."""
    columns = _merged_columns(parsed_trace)
    between_stages()
    normalize_times(columns, parsed_trace.metadata)
    erase_invalid_shapes(columns)
    slices = order_slices(columns)
    between_stages()
    links = link_slices(slices, columns)
    between_stages()
    marks = {  # before the tracks: an instant may be on a thread without a slice
        "memory": _memory_table(columns, slices, links),
        "instants": _instant_table(columns, slices),
        "counters": _counter_table(columns, slices),
    }
    tracks = _track_table(columns, slices)
    ops = _operator_argument_table(columns, slices, links, parsed_trace.metadata)
    rows, ops = split_overloads_from_names(_slice_table(columns, slices, links), ops)
    frames = _frame_argument_table(columns, slices, links)
    tables: dict[str, Any] = {
        "tracks": tracks,
        **marks,
        "compiled_args": _argument_table("compiled", columns, slices),
        "call_args": _call_argument_table(columns, slices, links),
        "device_args": _device_argument_table(columns, slices, links, parsed_trace.metadata),
        "collective_args": _collective_argument_table(columns, slices, links),
        "sync_args": _sync_argument_table(columns, slices),
        "clipped": _clipped_slice_table(slices),
        "events": event_count_table(columns.event_counts_by_phase_and_category),
        "repairs": repair_table(parsed_trace, columns, links, container_faults),
    }
    del columns, links  # the tables hold the data now: free the memory
    trace = Trace(
        slices=rows,
        op_args=ops,
        frame_args=frames,
        devices=device_table(parsed_trace.metadata),
        lines=source_lines_of_operators(parsed_trace.metadata, rows, ops, frames),
        **tables,
        metadata=MappingProxyType(parsed_trace.metadata),
        origin=origin_since_epoch(parsed_trace.metadata, slices.origin_ns),
        source=source,
    )
    return trace, slices


def _merged_columns(parsed_trace: ParsedTrace) -> FileEventColumns:
    """Returns the columns of all chunks; names cells of a notebook in them and in the facts."""
    threads = original_thread_by_added_thread(parsed_trace.metadata)
    columns = merge_chunks(parsed_trace.chunks, threads)
    columns.strings = name_notebook_cells(columns.strings, parsed_trace.metadata)
    return columns


def _slice_table(
    columns: FileEventColumns, slices: OrderedSlices, links: SliceLinks
) -> pl.DataFrame:
    unknown = ~slices.has_known_end
    duration = np.where(unknown, NO_INT, slices.end - slices.start)
    return table_of_arrays(
        schema.SLICES,
        {
            "id": np.arange(slices.start.size, dtype=np.uint32),
            "category": columns.decode_strings(slices.category),
            "name": columns.decode_strings(slices.name),
            "track": slices.track.astype(np.uint32),
            "start": slices.start,
            "duration": duration,
            "parent": slices.parent,
            "depth": np.minimum(slices.depth, np.iinfo(np.uint16).max).astype(np.uint16),
            "self": np.where(unknown, NO_INT, slices.self_time),
            "launch": links.launch,
        },
    )


def _track_table(columns: FileEventColumns, slices: OrderedSlices) -> pl.DataFrame:
    labels = columns.process_and_thread_labels
    threads = {(pid, tid): text for kind, pid, tid, text in labels if kind == "thread_name"}
    labels_by_process: dict[str, dict[str, None]] = {}
    for kind, pid, _, text in labels:
        if kind in {"process_name", "process_labels"}:
            labels_by_process.setdefault(pid, {})[text] = None
    processes = {
        pid: ", ".join(texts)[:_MAX_LABEL_CHARACTERS] for pid, texts in labels_by_process.items()
    }
    device = columns.columns_by_group.get("device", {})
    numbers = _device_and_stream_by_track(device, slices)
    rows = []
    for number, (thread, kind) in enumerate(slices.thread_and_kind_by_track):
        pid, tid = columns.threads[thread]
        where, stream = numbers.get(number, (None, None)) if kind == "device" else (None, None)
        process = processes.get(pid) or None
        rows.append(
            (number, kind, thread, pid, tid, threads.get((pid, tid)), process, where, stream)
        )
    return pl.DataFrame(rows, schema=dict(schema.TRACKS.dtypes), orient="row")


def _device_and_stream_by_track(
    device_columns: Columns, slices: OrderedSlices
) -> dict[int, tuple[int | None, int | None]]:
    """Returns the device and stream of each device track, by track number."""
    if not device_columns:
        return {}
    track = slices.track[slices.sorted_index_by_file_row[device_columns["row"]]]
    found, first = np.unique(track, return_index=True)
    pairs = zip(
        device_columns["device"][first].tolist(),
        device_columns["stream"][first].tolist(),
        strict=True,
    )
    numbers = [tuple(None if n == NO_INT else n for n in pair) for pair in pairs]
    return {int(t): (pair[0], pair[1]) for t, pair in zip(found, numbers, strict=True)}


def _argument_table(
    group: str, columns: FileEventColumns, slices: OrderedSlices, **link_columns: Any
) -> pl.DataFrame:
    """Returns the table of one kind of event's arguments, sorted by slice; frees its columns.

    `link_columns` are columns that come from linking slices.
    """
    table = schema.TABLES[f"{group}_args"]
    found = columns.columns_by_group.pop(group, None)
    if found is None or not found["row"].size:
        return table.empty()
    place = slices.sorted_index_by_file_row[found["row"]]
    order = np.argsort(place, kind="stable")
    declared = {column.name: column for column in table.columns}
    filled: dict[str, Any] = {"id": place[order].astype(np.uint32)}
    for spec in ARGUMENT_COLUMNS_BY_GROUP[group]:
        values, name = found.pop(spec.name), _TABLE_COLUMN_BY_ARGUMENT.get(spec.name, spec.name)
        if name in declared:
            column_values = (
                columns.decode_strings(values[order]) if spec.kind == "text" else values[order]
            )
            filled[name] = series_of_column(column_values, declared[name], order.size)
    for name, values in link_columns.items():
        filled[name] = values[order] if isinstance(values, np.ndarray) else values.gather(order)
    return table_of_arrays(table, filled)


def _slice_indices_of_group(
    group: str, columns: FileEventColumns, slices: OrderedSlices
) -> SignedInts:
    found = columns.columns_by_group.get(group)
    return slices.sorted_index_by_file_row[found["row"]] if found else np.empty(0, np.int64)


def _operator_argument_table(
    columns: FileEventColumns, slices: OrderedSlices, links: SliceLinks, metadata: Mapping[str, Any]
) -> pl.DataFrame:
    ops = columns.columns_by_group.get("op")
    if ops is None:
        return schema.OP_ARGS.empty()
    at = _slice_indices_of_group("op", columns, slices)
    return _argument_table(
        "op",
        columns,
        slices,
        forward=forward_operators(slices, ops, columns),
        frame=links.frame[at],
        module=links.module[at],
        **recorded_operator_facts(metadata, ops["external_id"]),
    )


_NO_OR_ANY_STREAM_NUMBERS: Final = (-1, 0xFFFF_FFFF)
"""Stream numbers that mean no stream or all streams, as signed and unsigned integers."""
_SYNC_STREAM_OFFSET: Final = 1_000_000
"""Number that Kineto adds to a stream's number for the track that shows only waits."""


def _sync_argument_table(columns: FileEventColumns, slices: OrderedSlices) -> pl.DataFrame:
    found = _argument_table("sync", columns, slices)
    if not found.height:
        return found
    stream = pl.col("stream")
    own = (
        pl.when(stream >= _SYNC_STREAM_OFFSET).then(stream - _SYNC_STREAM_OFFSET).otherwise(stream)
    )
    return found.with_columns(
        stream=pl.when(~stream.is_in(_NO_OR_ANY_STREAM_NUMBERS)).then(own),
        waits_on_stream=pl.when(~pl.col("waits_on_stream").is_in(_NO_OR_ANY_STREAM_NUMBERS)).then(
            "waits_on_stream"
        ),
    )


def _call_argument_table(
    columns: FileEventColumns, slices: OrderedSlices, links: SliceLinks
) -> pl.DataFrame:
    at = _slice_indices_of_group("call", columns, slices)
    linked = {"operator": links.operator[at], "frame": links.frame[at]}
    return _argument_table("call", columns, slices, **linked)


def _frame_argument_table(
    columns: FileEventColumns, slices: OrderedSlices, links: SliceLinks
) -> pl.DataFrame:
    return _argument_table(
        "frame",
        columns,
        slices,
        caller=links.caller[_slice_indices_of_group("frame", columns, slices)],
    )


def _device_argument_table(
    columns: FileEventColumns, slices: OrderedSlices, links: SliceLinks, metadata: Mapping[str, Any]
) -> pl.DataFrame:
    found = columns.columns_by_group.get("device")
    if found is None:
        return schema.DEVICE_ARGS.empty()
    return _argument_table(
        "device",
        columns,
        slices,
        operator=links.operator[_slice_indices_of_group("device", columns, slices)],
        properties=device_table_rows(metadata, found["device"]),
    )


def _collective_argument_table(
    columns: FileEventColumns, slices: OrderedSlices, links: SliceLinks
) -> pl.DataFrame:
    at = _slice_indices_of_group("collective", columns, slices)
    if not at.size:
        return schema.COLLECTIVE_ARGS.empty()
    records = np.zeros(slices.start.size, bool)
    records[at[slices.is_on_track_kind("host")[at]]] = True
    record = np.where(
        slices.is_on_track_kind("device")[at],
        nearest_ancestor(slices.parent, records, links.operator[at]),
        NO_SLICE,
    )
    return _argument_table("collective", columns, slices, record=record)


def _memory_table(
    columns: FileEventColumns, slices: OrderedSlices, links: SliceLinks
) -> pl.DataFrame:
    found = columns.columns_by_group.get("memory")
    if found is None or not found["time"].size:
        return schema.MEMORY.empty()
    order = np.argsort(found["time"], kind="stable")
    memory = {name: column[order] for name, column in found.items()}
    time = np.where(memory["time"] == NO_INT, 0, memory["time"] - slices.origin_ns)
    tracks = _host_track_of_each_thread(slices, memory["thread"])
    filled: dict[str, Any] = {
        **memory,
        "time": time,
        "track": tracks.astype(np.uint32),
        "operator": _innermost_operators_at(slices, links, tracks, time),
        "address": pl.Series(memory["address"]).replace(0, None),
    }
    return table_of_arrays(schema.MEMORY, filled)


def _host_track_of_each_thread(slices: OrderedSlices, threads: NDArray[Any]) -> SignedInts:
    """Returns each thread's host track number; adds a track for a thread that has none."""
    tracks = slices.thread_and_kind_by_track
    host = {where: number for number, (where, kind) in enumerate(tracks) if kind == "host"}
    for where in np.unique(threads).tolist():
        if where not in host:
            host[where] = len(tracks)
            tracks.append((where, "host"))
    return np.array([host[where] for where in threads.tolist()], np.int64)


def _innermost_operators_at(
    slices: OrderedSlices, links: SliceLinks, tracks: SignedInts, times: SignedInts
) -> SignedInts:
    """Returns the slice index of the innermost operator at each (track, time), or -1."""
    found = np.full(times.size, NO_SLICE, np.int64)
    host = np.flatnonzero(slices.is_on_track_kind("host"))
    for track in np.unique(tracks):
        on_track = host[slices.track[host] == track]
        order = np.argsort(slices.start[on_track], kind="stable")
        on_track = on_track[order]
        place = np.full(slices.start.size, NO_SLICE, np.int64) if on_track.size else on_track
        if not on_track.size:
            continue
        place[on_track] = np.arange(on_track.size)
        above = slices.parent[on_track]
        local = np.where(above == NO_SLICE, NO_SLICE, place[above])
        asked = np.flatnonzero(tracks == track)
        inner = innermost_slice_at(
            slices.start[on_track], slices.end[on_track], local, times[asked]
        )
        found[asked] = np.where(inner == NO_SLICE, NO_SLICE, links.operator[on_track[inner]])
    return found


def _instant_table(columns: FileEventColumns, slices: OrderedSlices) -> pl.DataFrame:
    found = columns.columns_by_group.get("instants")
    if found is None or not found["time"].size:
        return schema.INSTANTS.empty()
    known = found["time"] != NO_INT
    filled: dict[str, Any] = {
        "time": np.where(known, found["time"] - slices.origin_ns, 0),
        "track": _host_track_of_each_thread(slices, found["thread"]).astype(np.uint32),
        "category": columns.decode_strings(found["category"]),
        "name": columns.decode_strings(found["name"]),
    }
    return table_of_arrays(schema.INSTANTS, filled).sort("time", maintain_order=True)


def _counter_table(columns: FileEventColumns, slices: OrderedSlices) -> pl.DataFrame:
    if not columns.counter_samples:
        return schema.COUNTERS.empty()
    places = {thread: place for place, thread in enumerate(columns.threads)}
    threads = np.array([places[thread] for _, thread, *_ in columns.counter_samples], np.int64)
    tracks = _host_track_of_each_thread(slices, threads)
    rows = [
        (0 if ns == NO_INT else ns - slices.origin_ns, int(track), name, series, value)
        for (ns, _, name, series, value), track in zip(columns.counter_samples, tracks, strict=True)
    ]
    table = pl.DataFrame(rows, schema=dict(schema.COUNTERS.dtypes), orient="row")
    return table.with_columns(pl.col("value").fill_nan(None)).sort("time", maintain_order=True)


def _clipped_slice_table(slices: OrderedSlices) -> pl.DataFrame:
    at, start, end = slices.original_times_of_clipped_slices
    return table_of_arrays(
        schema.CLIPPED, {"id": at.astype(np.uint32), "start": start, "duration": end - start}
    )
