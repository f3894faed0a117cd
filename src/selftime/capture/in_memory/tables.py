"""Builds the tables that the view `operators` needs from a recording in memory.

The numbers are the same as those read from the trace file, and take a fraction of the time. Source
lines, stacks and other columns that `key_averages` does not show are left out.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import schema
from selftime.array_types import Ints
from selftime.capture.in_memory.events import KinetoEvents, are_kineto_events_supported
from selftime.capture.in_memory.slices import (
    TRACK_KINDS,
    MemoryRecords,
    OperatorArguments,
    OptionalOperatorColumns,
    ProfiledSlices,
    WorkLaunches,
    read_profiler_events,
)
from selftime.capture.profiler.memory_release import return_freed_memory
from selftime.nesting import MAX_ROUNDING_CROSSING_NS, NO_SLICE, nearest_ancestor, nest_slices
from selftime.trace import Trace

__all__ = ["OptionalOperatorColumns", "trace_tables_of_recording"]


_IDS_THAT_MEAN_NO_CORRELATION: Final = (0, -1)
"""Values of a correlation id that mean that an event has none."""
_MAX_DEVICE_CLOCK_ERROR_NS: Final = 1_000_000
"""Largest difference between the clocks of host and device that is tolerated, in ns."""
_NESTING_RANK_BY_CATEGORY: Final = {"user_annotation": 0, "cpu_op": 1}
"""Nesting order of slices with equal times, by category: the slice with the lower number is the
outer one."""
_NESTING_RANK_OF_OTHER_CATEGORIES: Final = 2


def trace_tables_of_recording(results: Any, columns: OptionalOperatorColumns) -> Trace | None:
    """Returns a recording in memory as a `Trace`; None if only its trace file has what is needed.

    None if the trace file is needed: this PyTorch lacks a method of events, a name is not UTF-8,
    two calls have the same correlation id, or device work may have ended after the recording.
    """
    if not are_kineto_events_supported():
        return None
    try:
        slices, records, launches, arguments = read_profiler_events(KinetoEvents(results), columns)
    except UnicodeDecodeError:
        return None
    return_freed_memory()  # the event objects are freed
    if not _are_launches_and_ends_certain(slices, launches):
        return None
    nested = _nest_slices(slices)
    launch = _launching_call_of_each_slice(launches, slices.start.size)
    tracks, track, memory_track = _track_table_and_track_ids(slices, records)
    return Trace(
        slices=_slice_table(slices, nested, track, launch),
        tracks=tracks,
        op_args=_operator_argument_table(slices, arguments),
        device_args=_device_argument_table(slices, launches, arguments, nested.parent, launch),
        memory=_memory_table(records, memory_track),
    )


def _are_launches_and_ends_certain(slices: ProfiledSlices, launches: WorkLaunches) -> bool:
    """Returns whether correlation ids of calls are unique and ends of device work are reliable.

    Unlike the trace file, the events do not contain when the profiler stopped. It waits for the
    device before, and that wait is a host slice: the recorded end of work after it may be wrong.
    """
    if not launches.device_work.size:
        return True
    correlations = launches.call_correlations[
        ~np.isin(launches.call_correlations, _IDS_THAT_MEAN_NO_CORRELATION)
    ]
    device = slices.kind == TRACK_KINDS.index("device")
    last = int(slices.end[~device].max(initial=0))
    return (
        np.unique(correlations).size == correlations.size
        and int(slices.end[device].max()) <= last + _MAX_DEVICE_CLOCK_ERROR_NS
    )


@dataclass(frozen=True, slots=True)
class _NestedSlices:
    """Start, duration and self time (ns), parent's index and nesting depth of each slice."""

    start: Ints
    duration: Ints
    parent: Ints
    depth: Ints
    self_time: Ints


def _nest_slices(slices: ProfiledSlices) -> _NestedSlices:
    """Returns the nesting of slices on host tracks, from their times; device work has no parent."""
    ranks = [
        _NESTING_RANK_BY_CATEGORY.get(category, _NESTING_RANK_OF_OTHER_CATEGORIES)
        for category in slices.categories
    ]
    rank = np.array(ranks, np.int64)[slices.category]
    track = slices.thread.astype(np.int64) * len(TRACK_KINDS) + slices.kind
    device = slices.indices_of_kind("device")
    if not device.size:
        nesting = nest_slices(
            track, slices.start, slices.end, rank, rounding_ns=MAX_ROUNDING_CROSSING_NS
        )
        duration = nesting.end - nesting.start
        return _NestedSlices(
            nesting.start, duration, nesting.parent, nesting.depth, nesting.self_time
        )
    indices = np.flatnonzero(slices.kind != TRACK_KINDS.index("device"))
    nesting = nest_slices(
        track[indices],
        slices.start[indices],
        slices.end[indices],
        rank[indices],
        rounding_ns=MAX_ROUNDING_CROSSING_NS,
    )
    size = slices.start.size
    start, duration = slices.start.copy(), slices.end - slices.start
    parent, depth = np.full(size, NO_SLICE, np.int64), np.zeros(size, np.int64)
    self_time = duration.copy()
    start[indices], duration[indices] = nesting.start, nesting.end - nesting.start
    parent[indices] = np.where(nesting.parent == NO_SLICE, NO_SLICE, indices[nesting.parent])
    depth[indices], self_time[indices] = nesting.depth, nesting.self_time
    return _NestedSlices(start, duration, parent, depth, self_time)


def _launching_call_of_each_slice(launches: WorkLaunches, slice_count: int) -> Ints:
    """Returns for each slice the index of the call that launched it; NO_SLICE without one."""
    launch = np.full(slice_count, NO_SLICE, np.int64)
    has_correlation = ~np.isin(launches.call_correlations, _IDS_THAT_MEAN_NO_CORRELATION)
    calls, correlations = (
        launches.calls[has_correlation],
        launches.call_correlations[has_correlation],
    )
    if correlations.size:
        order = np.argsort(correlations)
        calls, correlations = calls[order], correlations[order]
        position = np.minimum(
            np.searchsorted(correlations, launches.work_correlations), correlations.size - 1
        )
        launch[launches.device_work] = np.where(
            correlations[position] == launches.work_correlations, calls[position], NO_SLICE
        )
    return launch


def _track_table_and_track_ids(
    slices: ProfiledSlices, records: MemoryRecords
) -> tuple[pl.DataFrame, Ints, Ints]:
    """Returns (table of tracks, track id of each slice, track id of each memory record)."""
    key = slices.thread * np.uint32(len(TRACK_KINDS)) + slices.kind
    memory_track = records.thread * np.uint32(len(TRACK_KINDS)) + np.uint32(
        TRACK_KINDS.index("host")
    )
    size = len(slices.threads) * len(TRACK_KINDS)
    used = (np.bincount(key, minlength=size) > 0) | (np.bincount(memory_track, minlength=size) > 0)
    used_keys = np.flatnonzero(used)
    number = np.cumsum(used) - 1
    threads, kinds = np.divmod(used_keys, len(TRACK_KINDS))
    tracks = {
        "id": np.arange(used_keys.size),
        "kind": [TRACK_KINDS[kind] for kind in kinds.tolist()],
        "thread": threads,
        "process": [""] * used_keys.size,
        "tid": [str(slices.threads[thread][1]) for thread in threads.tolist()],
    }
    return _table_with_dtypes_of_schema(schema.TRACKS, tracks), number[key], number[memory_track]


def _slice_table(
    slices: ProfiledSlices, nested: _NestedSlices, track_of_slice: Ints, launch_of_slice: Ints
) -> pl.DataFrame:
    unknown = pl.Series(~slices.known_end)
    return _table_with_dtypes_of_schema(
        schema.SLICES,
        {
            "id": np.arange(slices.start.size, dtype=np.uint32),
            "category": _name_column(slices.categories).gather(slices.category),
            "name": _name_column(slices.names).gather(slices.name),
            "track": track_of_slice,
            "start": nested.start,
            "duration": pl.Series(nested.duration).set(unknown, None),
            "parent": _column_of_slice_ids_with_nulls(nested.parent),
            "depth": np.minimum(nested.depth, np.iinfo(np.uint16).max),
            "self": pl.Series(nested.self_time).set(unknown, None),
            "launch": _column_of_slice_ids_with_nulls(launch_of_slice),
        },
    )


def _operator_argument_table(slices: ProfiledSlices, arguments: OperatorArguments) -> pl.DataFrame:
    indices = arguments.operators
    data: dict[str, Any] = {"id": indices, "asynchronous": slices.asynchronous[indices]}
    if arguments.shapes is not None:
        shape, shapes = arguments.shapes
        data["input_shapes"] = _name_column(shapes).gather(shape)
    if arguments.overloads is not None:
        overload, overloads = arguments.overloads
        data["overload"] = _name_column([text or None for text in overloads]).gather(overload)
    if arguments.flops is not None:
        flops = pl.Series(arguments.flops)
        data["flops"] = flops.set(flops == 0, None)
    return _table_with_dtypes_of_schema(schema.OP_ARGS, data)


def _device_argument_table(
    slices: ProfiledSlices,
    launches: WorkLaunches,
    arguments: OperatorArguments,
    parent_of_slice: Ints,
    launch_of_slice: Ints,
) -> pl.DataFrame:
    indices = launches.device_work
    if not indices.size:
        return schema.DEVICE_ARGS.empty()
    operators = np.zeros(slices.start.size, bool)
    operators[arguments.operators] = True
    device_and_stream = np.array(slices.threads, np.int64)[slices.thread[indices]]
    operator = nearest_ancestor(parent_of_slice, operators, launch_of_slice[indices])
    data = {
        "id": indices,
        "device": device_and_stream[:, 0],
        "stream": device_and_stream[:, 1],
        "operator": _column_of_slice_ids_with_nulls(operator),
    }
    return _table_with_dtypes_of_schema(schema.DEVICE_ARGS, data)


def _memory_table(records: MemoryRecords, track_of_record: Ints) -> pl.DataFrame:
    if not records.time.size:
        return schema.MEMORY.empty()
    data = {
        "time": records.time,
        "track": track_of_record,
        "bytes": records.bytes,
        "device_type": records.device_type,
        "failed": np.zeros(records.time.size, bool),
    }
    return _table_with_dtypes_of_schema(schema.MEMORY, data)


def _name_column(texts: list[Any]) -> pl.Series:
    return pl.Series(texts, dtype=pl.String).cast(schema.NameType)


def _column_of_slice_ids_with_nulls(indices: Ints) -> pl.Series:
    """Returns slice indices as a column in which NO_SLICE is replaced by null."""
    return pl.Series(np.maximum(indices, 0).astype(np.uint32)).set(
        pl.Series(indices == NO_SLICE), None
    )


def _table_with_dtypes_of_schema(table: schema.Table, data: dict[str, Any]) -> pl.DataFrame:
    """Returns a table with the schema's columns; columns that `data` lacks contain only nulls."""
    series = [pl.Series(name, values).cast(table.dtypes[name]) for name, values in data.items()]
    empty = table.empty().clear(series[0].len())
    return empty.with_columns(series)
