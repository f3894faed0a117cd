"""Read snapshots of PyTorch's CUDA allocator, which `_dump_snapshot` writes as pickles.

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
from selftime.ingest.snapshots.allocator import (
    Device,
    devices_of,
    escape_surrogates,
    nanoseconds,
    plain_dicts,
)
from selftime.ingest.snapshots.pickles import read_plain
from selftime.ingest.text.header import FIRST_EPOCH
from selftime.nesting import NONE, innermost_at, nest
from selftime.trace import Trace

_CUDA: Final = 1
"""The device type of CUDA's allocator; HIP's has the same."""
_EARLIER: Final = -1
"""The time in ns given to blocks that were allocated before the first record."""
_LONGEST_SETTINGS: Final = 1 << 16
"""The most values and characters that are kept of the allocator's settings."""
_REMEDY: Final = (
    "call `torch.cuda.memory._record_memory_history()` early and give what `_dump_snapshot` writes"
)


class _Annotation(NamedTuple):
    """An annotation, with its begin and end in ns."""

    name: str
    begin: int
    end: int


def read_snapshot(data: bytes, source: str) -> Trace:
    """Returns the trace in a pickle: its memory records, and its annotations.

    Raises:
        UnreadableTrace: It is not an intact pickle of plain values, or has no memory record.
    """
    with _without_garbage_collection():
        return _read(data, source)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection: millions of objects are created, none is garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _read(data: bytes, source: str) -> Trace:
    snapshot = read_plain(data)
    if not isinstance(snapshot, dict) or not {"device_traces", "segments"} & snapshot.keys():
        raise UnreadableTrace(f"it is a pickle of something else than a snapshot: {_REMEDY}")
    devices = devices_of(snapshot, len(data))
    marks = _annotations(snapshot.get("external_annotations"))
    begins = [int(device.time[0]) for device in devices if device.time.size]
    origin = min([*begins, *(mark.begin for mark in marks)], default=0)
    slices = _slices([_Annotation(m.name, m.begin - origin, m.end - origin) for m in marks])
    parts = [_records(entry, origin, track) for track, entry in enumerate(devices, start=1)]
    memory = pl.concat([schema.MEMORY.empty(), *parts]).sort("time", maintain_order=True)
    if not memory.height:
        raise UnreadableTrace(f"it is a memory snapshot without a record: {_REMEDY}")
    return Trace(
        slices=slices,
        tracks=_tracks(devices),
        memory=memory.with_columns(operator=_innermost_annotation(slices, memory["time"])),
        repairs=_repairs(devices),
        metadata=MappingProxyType(_settings(snapshot.get("allocator_settings"))),
        origin=origin if origin >= FIRST_EPOCH else None,
        source=source,
    )


def _records(device: Device, origin: int, track: int) -> pl.DataFrame:
    """Returns one device's records: earlier blocks, totals at the start, then the actions."""
    has_segments = device.reserved is not None
    in_use = sum(block.size for block in device.blocks)
    allocated = in_use - device.change.sum() + np.cumsum(device.change)
    reserved = (device.reserved or 0) - device.reserve.sum() + np.cumsum(device.reserve)
    actions = {
        "time": device.time - origin,
        "bytes": device.change + device.failed,
        "address": pl.Series(device.address, dtype=pl.UInt64),
        "allocated": allocated if has_segments else None,
        "reserved": reserved if has_segments else None,
        "failed": device.failed > 0,
        "call_stack": _categorical(device.stack),
    }
    parts = [_table(track, device.number, actions)]
    if has_segments:
        opening = {
            "time": [int(device.time[0]) - origin if device.time.size else 0],
            "bytes": [0],
            "allocated": [in_use - int(device.change.sum())],
            "reserved": [(device.reserved or 0) - int(device.reserve.sum())],
        }
        parts = [
            _blocks_before_records(device, track),
            _table(track, device.number, opening),
            *parts,
        ]
    return pl.concat(parts)


def _blocks_before_records(device: Device, track: int) -> pl.DataFrame:
    """Returns the blocks in use at the end whose allocation is not recorded."""
    last = dict(zip(device.address, device.change.tolist(), strict=True))
    lost = [block for block in device.blocks if last.get(block.address, 0) <= 0]
    columns = {
        "time": [_EARLIER] * len(lost),
        "bytes": [block.size for block in lost],
        "address": pl.Series([block.address for block in lost], dtype=pl.UInt64),
        "call_stack": _categorical([block.stack for block in lost]),
    }
    return _table(track, device.number, columns).filter(pl.col("bytes") > 0)


def _table(track: int, number: int, columns: dict[str, Any]) -> pl.DataFrame:
    """Returns records of one device with every column of the table, null where not given."""
    common = {"track": track, "device_type": _CUDA, "device": number}
    given = pl.DataFrame({name: values for name, values in columns.items() if values is not None})
    if "failed" not in columns:
        given = given.with_columns(failed=pl.lit(False))
    return given.with_columns(**{name: pl.lit(value) for name, value in common.items()}).select(
        (pl.col(c.name) if c.name in given.columns or c.name in common else pl.lit(None))
        .cast(c.dtype)
        .alias(c.name)
        for c in schema.MEMORY.columns
    )


def _categorical(texts: Sequence[str | None]) -> pl.Series:
    """Returns texts as a categorical column, which stores each distinct text once."""
    numbers: dict[str, int] = {}
    places = [None if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
    known = pl.Series(list(numbers), dtype=pl.String).cast(pl.Categorical)
    return known.gather(pl.Series(places, dtype=pl.UInt32))


def _annotations(annotations: Any) -> list[_Annotation]:
    """Returns annotations from begin and end entries; an end closes its name's last begin."""
    found: list[_Annotation] = []
    open_marks: dict[tuple[int | str | None, str], list[int]] = {}
    for entry in plain_dicts(annotations):
        name, time = entry.get("name"), nanoseconds(entry.get("time_us"))
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


def _slices(marks: list[_Annotation]) -> pl.DataFrame:
    """Returns the annotations as slices of the first track, in order of begin."""
    begin = np.array([mark.begin for mark in marks], np.int64)
    end = np.array([mark.end for mark in marks], np.int64)
    same = np.zeros(begin.size, np.int64)
    nested = nest(same, begin, end, same, bleed=0)
    columns = {
        "id": range(len(marks)),
        "category": ["user_annotation"] * len(marks),
        "name": _categorical([mark.name for mark in marks]),
        "track": same,
        "start": begin,
        "duration": end - begin,
        "parent": [None if parent == NONE else parent for parent in nested.parent.tolist()],
        "depth": nested.depth,
        "self": nested.self_time,
        "launch": [None] * len(marks),
    }
    return pl.DataFrame(
        [pl.Series(c.name, columns[c.name]).cast(c.dtype) for c in schema.SLICES.columns]
    )


def _innermost_annotation(slices: pl.DataFrame, time: pl.Series) -> pl.Series:
    """Returns the innermost annotation around each record's time; null if there is none."""
    start = slices["start"].to_numpy()
    parent = slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    found = innermost_at(start, start + slices["duration"].to_numpy(), parent, time.to_numpy())
    return pl.Series(found).set(pl.Series(found == NONE), None).cast(pl.UInt32)


def _tracks(devices: list[Device]) -> pl.DataFrame:
    """Returns a track for the annotations, and one for the records of each device."""
    named = ["annotations", *(f"allocations on device {device.number}" for device in devices)]
    rows = [
        (n, "host", n, "snapshot", str(n), name, "memory snapshot", None, None)
        for n, name in enumerate(named)
    ]
    return pl.DataFrame(rows, schema=dict(schema.TRACKS.dtypes), orient="row")


def _repairs(devices: list[Device]) -> pl.DataFrame:
    """Returns the faults of the snapshot's entries."""
    found = Counter(
        {
            "entries without a time: their order stands for it, a microsecond apart": sum(
                device.time.size for device in devices if not device.is_timed
            ),
            "entries that are not what they should be: left out": sum(d.unread for d in devices),
            "frames that are no Unicode: shown with escapes": sum(d.escaped for d in devices),
        }
    )
    rows = [(what, count, None, 0, None, False, False) for what, count in (+found).items()]
    return pl.DataFrame(rows, schema=dict(schema.REPAIRS.dtypes), orient="row")


def _settings(settings: Any) -> dict[str, Any]:
    """Returns the allocator's settings, if they can be written as JSON; else empty."""
    if not isinstance(settings, dict) or not _is_short(settings):
        return {}
    try:
        text = json.dumps(settings, allow_nan=False, ensure_ascii=False)
        return {"allocator_settings": json.loads(text.encode("utf-8", "replace"))}
    except (TypeError, ValueError, RecursionError):
        return {}


def _is_short(value: Any) -> bool:
    """Returns whether a value with all nested values is short; lists may repeat one another."""
    left, unseen = _LONGEST_SETTINGS, [value]
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
