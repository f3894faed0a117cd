"""Snapshots of PyTorch's CUDA allocator: `torch.cuda.memory._dump_snapshot` writes them as pickles.

A snapshot holds what each device's allocator did, as far back as its ring of entries reaches, and
what it holds in the end. A block is released when its release is requested: then the program can
use it no more. Sizes are those requested; what the allocator adds to round them up counts to what
is reserved. Totals are reckoned back from the end, so that they hold what the ring has lost. Blocks
in use in the end whose allocation it has lost are records before the first: their time is negative.
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
    nanoseconds,
    plain_dicts,
    writable,
)
from selftime.ingest.snapshots.pickles import read_plain
from selftime.ingest.text.header import FIRST_EPOCH
from selftime.nesting import NONE, innermost_at, nest
from selftime.trace import Trace

_CUDA: Final = 1
"""The type of device that has such an allocator; HIP's goes by the same name."""
_EARLIER: Final = -1
"""The time of what was there before the first record."""
_LONGEST_SETTINGS: Final = 1 << 16
"""Values and characters of the allocator's settings: there are some dozens."""
_REMEDY: Final = (
    "call `torch.cuda.memory._record_memory_history()` early and give what `_dump_snapshot` writes"
)


class _Mark(NamedTuple):
    """An annotation, with its begin and end in ns."""

    name: str
    begin: int
    end: int


def read_snapshot(data: bytes, source: str) -> Trace:
    """The trace in a pickle: its memory records, and the annotations around them.

    Raises:
        UnreadableTrace: It is no whole pickle of plain values, or no snapshot with a record.
    """
    with _no_collection():
        return _read(data, source)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Millions of lists and dicts come into being, and none is garbage: do not look for it."""
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
    marks = _marks(snapshot.get("external_annotations"))
    begins = [int(device.time[0]) for device in devices if device.time.size]
    origin = min([*begins, *(mark.begin for mark in marks)], default=0)
    slices = _slices([_Mark(m.name, m.begin - origin, m.end - origin) for m in marks])
    parts = [_records(one, origin, track) for track, one in enumerate(devices, start=1)]
    memory = pl.concat([schema.MEMORY.empty(), *parts]).sort("time", maintain_order=True)
    if not memory.height:
        raise UnreadableTrace(f"it is a memory snapshot without a record: {_REMEDY}")
    return Trace(
        slices=slices,
        tracks=_tracks(devices),
        memory=memory.with_columns(operator=_around(slices, memory["time"])),
        repairs=_repairs(devices),
        metadata=MappingProxyType(_settings(snapshot.get("allocator_settings"))),
        origin=origin if origin >= FIRST_EPOCH else None,
        source=source,
    )


def _records(device: Device, origin: int, track: int) -> pl.DataFrame:
    """The records of one device: what was there before, what there was in all, what happened."""
    told = device.reserved is not None
    held = sum(block.size for block in device.blocks)
    allocated = held - device.change.sum() + np.cumsum(device.change)
    reserved = (device.reserved or 0) - device.reserve.sum() + np.cumsum(device.reserve)
    happened = {
        "time": device.time - origin,
        "bytes": device.change + device.failed,
        "address": pl.Series(device.address, dtype=pl.UInt64),
        "allocated": allocated if told else None,
        "reserved": reserved if told else None,
        "failed": device.failed > 0,
        "call_stack": _coded(device.stack),
    }
    parts = [_table(track, device.number, happened)]
    if told:
        opening = {
            "time": [int(device.time[0]) - origin if device.time.size else 0],
            "bytes": [0],
            "allocated": [held - int(device.change.sum())],
            "reserved": [(device.reserved or 0) - int(device.reserve.sum())],
        }
        parts = [_earlier(device, track), _table(track, device.number, opening), *parts]
    return pl.concat(parts)


def _earlier(device: Device, track: int) -> pl.DataFrame:
    """The blocks in use in the end that no record allocates."""
    last = dict(zip(device.address, device.change.tolist(), strict=True))
    lost = [block for block in device.blocks if last.get(block.address, 0) <= 0]
    columns = {
        "time": [_EARLIER] * len(lost),
        "bytes": [block.size for block in lost],
        "address": pl.Series([block.address for block in lost], dtype=pl.UInt64),
        "call_stack": _coded([block.stack for block in lost]),
    }
    return _table(track, device.number, columns).filter(pl.col("bytes") > 0)


def _table(track: int, number: int, columns: dict[str, Any]) -> pl.DataFrame:
    """Records of one device with every column of the table, null where it is not given."""
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


def _coded(texts: Sequence[str | None]) -> pl.Series:
    """Texts as a column that holds each of them once: one may stand in many places."""
    numbers: dict[str, int] = {}
    places = [None if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
    known = pl.Series(list(numbers), dtype=pl.String).cast(pl.Categorical)
    return known.gather(pl.Series(places, dtype=pl.UInt32))


def _marks(annotations: Any) -> list[_Mark]:
    """Annotations from their begins and ends, each end with the latest begin of its name."""
    found: list[_Mark] = []
    open_marks: dict[tuple[int | str | None, str], list[int]] = {}
    for one in plain_dicts(annotations):
        name, time = one.get("name"), nanoseconds(one.get("time_us"))
        if not isinstance(name, str) or time is None:
            continue
        device = one.get("device")
        known = device if isinstance(device, int | str) else None
        begins = open_marks.setdefault((known, name), [])
        if one.get("stage") == "START":
            begins.append(time)
        elif one.get("stage") == "END" and begins and begins[-1] <= time:
            found.append(_Mark(writable(name), begins.pop(), time))
    return sorted(found, key=lambda mark: (mark.begin, -mark.end))


def _slices(marks: list[_Mark]) -> pl.DataFrame:
    """The annotations as slices of the first track, in order of begin."""
    begin = np.array([mark.begin for mark in marks], np.int64)
    end = np.array([mark.end for mark in marks], np.int64)
    same = np.zeros(begin.size, np.int64)
    nested = nest(same, begin, end, same, bleed=0)
    columns = {
        "id": range(len(marks)),
        "category": ["user_annotation"] * len(marks),
        "name": _coded([mark.name for mark in marks]),
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


def _around(slices: pl.DataFrame, time: pl.Series) -> pl.Series:
    """The innermost annotation around each record."""
    start = slices["start"].to_numpy()
    parent = slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    found = innermost_at(start, start + slices["duration"].to_numpy(), parent, time.to_numpy())
    return pl.Series(found).set(pl.Series(found == NONE), None).cast(pl.UInt32)


def _tracks(devices: list[Device]) -> pl.DataFrame:
    """A track for the annotations, and one for the records of each device."""
    named = ["annotations", *(f"allocations on device {device.number}" for device in devices)]
    rows = [
        (n, "host", n, "snapshot", str(n), name, "memory snapshot", None, None)
        for n, name in enumerate(named)
    ]
    return pl.DataFrame(rows, schema=dict(schema.TRACKS.dtypes), orient="row")


def _repairs(devices: list[Device]) -> pl.DataFrame:
    """What the entries lack."""
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
    """The allocator's settings, if they can be written as JSON."""
    if not isinstance(settings, dict) or not _is_short(settings):
        return {}
    try:
        text = json.dumps(settings, allow_nan=False, ensure_ascii=False)
        return {"allocator_settings": json.loads(text.encode("utf-8", "replace"))}
    except (TypeError, ValueError, RecursionError):
        return {}


def _is_short(value: Any) -> bool:
    """Whether a value is short with all that it repeats: lists may hold one another many times."""
    left, unseen = _LONGEST_SETTINGS, [value]
    while unseen:
        one = unseen.pop()
        left -= 1 + (len(one) if isinstance(one, list | tuple | dict | str) else 0)
        if left < 0:
            return False
        if isinstance(one, dict):
            unseen += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            unseen += one
    return True
