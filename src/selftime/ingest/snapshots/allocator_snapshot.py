"""Reads memory snapshots, which `torch.cuda.memory._dump_snapshot` writes as pickles.

A snapshot holds the actions of each device's allocator, as far back as its ring buffer reaches, and
the blocks in use at the end. A block counts as released when its release is requested, since the
program can no longer use it. Sizes are the requested ones; rounding by the allocator counts as
reserved. Totals are computed backwards from the end, so that they include what the ring buffer has
lost. Blocks in use at the end whose allocation was lost are records before the first: their time is
negative.
"""

import gc
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from selftime import schema
from selftime.errors import UnreadableTrace
from selftime.ingest.snapshots.allocator_records import (
    DeviceAllocatorRecords,
    allocator_records_by_device,
    dicts_in_list,
    escape_surrogates,
    snapshot_time_ns,
)
from selftime.ingest.snapshots.plain_pickles import read_plain_pickle
from selftime.ingest.text.trace_header import EARLIEST_EPOCH_TIME_NS
from selftime.nesting import NO_SLICE, innermost_slice_at, nest_slices
from selftime.trace import Trace

_CUDA_DEVICE_TYPE_NUMBER: Final = 1
"""PyTorch's number for the device type CUDA; snapshots from HIP's allocator use it too."""
_TIME_OF_EARLIER_BLOCKS_NS: Final = -1
"""The time in ns given to blocks that were allocated before the first record."""
_MAX_SETTINGS_SIZE: Final = 1 << 16
"""Largest size of the allocator's settings that is kept, in values and characters."""
_HOW_TO_RECORD_SNAPSHOT: Final = (
    "call `torch.cuda.memory._record_memory_history()` early and give what `_dump_snapshot` writes"
)


class _Annotation(NamedTuple):
    """An annotated range of the program: its name, and its begin and end in ns."""

    name: str
    begin: int
    end: int


def read_snapshot(pickle_bytes: bytes, source: str) -> Trace:
    """Returns a memory snapshot as a trace with its allocations, releases and annotations.

    Raises:
        UnreadableTrace: It is not an intact pickle of plain values, or has no memory record.
    """
    with _without_garbage_collection():
        return _trace_of_snapshot(pickle_bytes, source)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disables Python's garbage collector within a `with` block."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _trace_of_snapshot(pickle_bytes: bytes, source: str) -> Trace:
    snapshot = read_plain_pickle(pickle_bytes)
    if not isinstance(snapshot, dict) or not {"device_traces", "segments"} & snapshot.keys():
        raise UnreadableTrace(
            f"it is a pickle of something else than a snapshot: {_HOW_TO_RECORD_SNAPSHOT}"
        )
    devices = allocator_records_by_device(snapshot, len(pickle_bytes))
    annotations = _pair_annotation_entries(snapshot.get("external_annotations"))
    begins = [int(device.time[0]) for device in devices if device.time.size]
    origin = min([*begins, *(annotation.begin for annotation in annotations)], default=0)
    slices = _annotation_slices(
        [_Annotation(m.name, m.begin - origin, m.end - origin) for m in annotations]
    )
    parts = [
        _memory_record_table(entry, origin, track) for track, entry in enumerate(devices, start=1)
    ]
    memory = pl.concat([schema.MEMORY.empty(), *parts]).sort("time", maintain_order=True)
    if not memory.height:
        raise UnreadableTrace(
            f"it is a memory snapshot without a record: {_HOW_TO_RECORD_SNAPSHOT}"
        )
    return Trace(
        slices=slices,
        tracks=_track_table(devices),
        memory=memory.with_columns(
            operator=_innermost_annotation_of_each_record(slices, memory["time"])
        ),
        repairs=_repair_table(devices),
        metadata=MappingProxyType(_settings_as_json_value(snapshot.get("allocator_settings"))),
        origin=origin if origin >= EARLIEST_EPOCH_TIME_NS else None,
        source=source,
    )


def _memory_record_table(
    device: DeviceAllocatorRecords, origin_ns: int, track: int
) -> pl.DataFrame:
    """Returns one device's rows of the table `memory`, from its blocks and allocator records."""
    has_segments = device.reserved is not None
    in_use = sum(block.size for block in device.blocks)
    allocated = in_use - device.change.sum() + np.cumsum(device.change)
    reserved = (device.reserved or 0) - device.reserve.sum() + np.cumsum(device.reserve)
    actions = {
        "time": device.time - origin_ns,
        "bytes": device.change + device.failed,
        "address": pl.Series(device.address, dtype=pl.UInt64),
        "allocated": allocated if has_segments else None,
        "reserved": reserved if has_segments else None,
        "failed": device.failed > 0,
        "call_stack": _categorical_column(device.stack),
    }
    parts = [_memory_table_of_device(track, device.number, actions)]
    if has_segments:
        opening = {
            "time": [int(device.time[0]) - origin_ns if device.time.size else 0],
            "bytes": [0],
            "allocated": [in_use - int(device.change.sum())],
            "reserved": [(device.reserved or 0) - int(device.reserve.sum())],
        }
        parts = [
            _rows_of_earlier_blocks(device, track),
            _memory_table_of_device(track, device.number, opening),
            *parts,
        ]
    return pl.concat(parts)


def _rows_of_earlier_blocks(device: DeviceAllocatorRecords, track: int) -> pl.DataFrame:
    """Returns a row for each block in use at the end whose allocation was not recorded."""
    last = dict(zip(device.address, device.change.tolist(), strict=True))
    lost = [block for block in device.blocks if last.get(block.address, 0) <= 0]
    columns = {
        "time": [_TIME_OF_EARLIER_BLOCKS_NS] * len(lost),
        "bytes": [block.size for block in lost],
        "address": pl.Series([block.address for block in lost], dtype=pl.UInt64),
        "call_stack": _categorical_column([block.stack for block in lost]),
    }
    return _memory_table_of_device(track, device.number, columns).filter(pl.col("bytes") > 0)


def _memory_table_of_device(
    track: int, device_number: int, columns: dict[str, Any]
) -> pl.DataFrame:
    """Returns one device's rows with all columns of the table `memory`; absent columns are null."""
    common = {"track": track, "device_type": _CUDA_DEVICE_TYPE_NUMBER, "device": device_number}
    given = pl.DataFrame({name: values for name, values in columns.items() if values is not None})
    if "failed" not in columns:
        given = given.with_columns(failed=pl.lit(False))
    return given.with_columns(**{name: pl.lit(value) for name, value in common.items()}).select(
        (pl.col(c.name) if c.name in given.columns or c.name in common else pl.lit(None))
        .cast(c.dtype)
        .alias(c.name)
        for c in schema.MEMORY.columns
    )


def _categorical_column(texts: Sequence[str | None]) -> pl.Series:
    """Returns texts as a polars column of type Categorical."""
    numbers: dict[str, int] = {}
    places = [None if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
    known = pl.Series(list(numbers), dtype=pl.String).cast(pl.Categorical)
    return known.gather(pl.Series(places, dtype=pl.UInt32))


def _pair_annotation_entries(entries: Any) -> list[_Annotation]:
    """Returns annotations from START and END entries; an END matches its name's last START."""
    found: list[_Annotation] = []
    open_marks: dict[tuple[int | str | None, str], list[int]] = {}
    for entry in dicts_in_list(entries):
        name, time = entry.get("name"), snapshot_time_ns(entry.get("time_us"))
        if not isinstance(name, str) or time is None:
            continue
        device = entry.get("device")
        known = device if isinstance(device, int | str) else None
        begins = open_marks.setdefault((known, name), [])
        if entry.get("stage") == "START":
            begins.append(time)
        elif entry.get("stage") == "END" and begins and begins[-1] <= time:
            found.append(_Annotation(escape_surrogates(name), begins.pop(), time))
    return sorted(found, key=lambda mark: (mark.begin, -mark.end))


def _annotation_slices(annotations: list[_Annotation]) -> pl.DataFrame:
    """Returns the table of slices: one on track 0 for each annotation, in order of begin."""
    begin = np.array([annotation.begin for annotation in annotations], np.int64)
    end = np.array([annotation.end for annotation in annotations], np.int64)
    same = np.zeros(begin.size, np.int64)
    nested = nest_slices(same, begin, end, same, rounding_ns=0)
    columns = {
        "id": range(len(annotations)),
        "category": ["user_annotation"] * len(annotations),
        "name": _categorical_column([annotation.name for annotation in annotations]),
        "track": same,
        "start": begin,
        "duration": end - begin,
        "parent": [None if parent == NO_SLICE else parent for parent in nested.parent.tolist()],
        "depth": nested.depth,
        "self": nested.self_time,
        "launch": [None] * len(annotations),
    }
    return pl.DataFrame(
        [pl.Series(c.name, columns[c.name]).cast(c.dtype) for c in schema.SLICES.columns]
    )


def _innermost_annotation_of_each_record(
    slices: pl.DataFrame, record_times: pl.Series
) -> pl.Series:
    """Returns the id of the innermost annotation at each record's time; null if there is none."""
    start = slices["start"].to_numpy()
    parent = slices["parent"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    found = innermost_slice_at(
        start, start + slices["duration"].to_numpy(), parent, record_times.to_numpy()
    )
    return pl.Series(found).set(pl.Series(found == NO_SLICE), None).cast(pl.UInt32)


def _track_table(devices: list[DeviceAllocatorRecords]) -> pl.DataFrame:
    """Returns the table of tracks: one for all annotations, and one for each device."""
    named = ["annotations", *(f"allocations on device {device.number}" for device in devices)]
    rows = [
        (n, "host", n, "snapshot", str(n), name, "memory snapshot", None, None)
        for n, name in enumerate(named)
    ]
    return pl.DataFrame(rows, schema=dict(schema.TRACKS.dtypes), orient="row")


def _repair_table(devices: list[DeviceAllocatorRecords]) -> pl.DataFrame:
    """Returns the table `repairs`, with the number of faulty snapshot entries of each kind."""
    found = Counter(
        {
            "entries without a time: placed in order, one microsecond apart": sum(
                device.time.size for device in devices if not device.is_timed
            ),
            "entries of an unexpected type: left out": sum(d.unread for d in devices),
            "frames that are not valid Unicode: shown with escapes": sum(
                d.escaped for d in devices
            ),
        }
    )
    rows = [(what, count, None, 0, None, False, False) for what, count in (+found).items()]
    return pl.DataFrame(rows, schema=dict(schema.REPAIRS.dtypes), orient="row")


def _settings_as_json_value(settings: Any) -> dict[str, Any]:
    """Returns a dict with the allocator's settings if they can be written as JSON; else empty."""
    if not isinstance(settings, dict) or not _has_few_nested_values(settings):
        return {}
    try:
        text = json.dumps(settings, allow_nan=False, ensure_ascii=False)
        return {"allocator_settings": json.loads(text.encode("utf-8", "replace"))}
    except (TypeError, ValueError, RecursionError):
        return {}


def _has_few_nested_values(value: Any) -> bool:
    """Returns whether a value has at most `_MAX_SETTINGS_SIZE` nested values and characters."""
    left, unseen = _MAX_SETTINGS_SIZE, [value]
    while unseen:
        entry = unseen.pop()
        left -= 1 + (len(entry) if isinstance(entry, list | tuple | dict | str) else 0)
        if left < 0:
            return False
        if isinstance(entry, dict):
            unseen += [*entry, *entry.values()]
        elif isinstance(entry, list | tuple):
            unseen += entry
    return True
