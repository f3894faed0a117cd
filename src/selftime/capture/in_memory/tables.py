"""A recording in memory as a trace: the tables that the view `operators` draws from.

Its numbers are those of the trace file that would be written of it, at a fraction of the time.
Source lines, stacks and what else a table in torch's form does not show are left out.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import schema
from selftime.arrays import Ints
from selftime.capture.heap import give_back
from selftime.capture.in_memory.events import Events, are_readable
from selftime.capture.in_memory.slices import (
    KINDS,
    Arguments,
    Launches,
    Records,
    Slices,
    Wanted,
    read,
)
from selftime.nesting import NONE, ROUNDING_NS, nearest, nest
from selftime.trace import Trace

__all__ = ["Wanted", "read_tables"]


_NO_LINK: Final = (0, -1)
"""Correlations that stand for none."""
_SLACK: Final = 1_000_000
"""Clocks of host and device may disagree by up to 1 ms."""
_RANK: Final = {"user_annotation": 0, "cpu_op": 1}
_RANK_OF_OTHERS: Final = 2


def read_tables(results: Any, wanted: Wanted) -> Trace | None:
    """The tables of a recording, from what torch's profiler holds of it.

    None where only the trace file tells: PyTorch does not answer what is asked, a name is not
    UTF-8, a call shares its number with another, or work may have ended after the recorder.
    """
    if not are_readable():
        return None
    try:
        slices, records, launches, arguments = read(Events(results), wanted)
    except UnicodeDecodeError:
        return None
    give_back()  # the events' objects are gone
    if not _are_certain(slices, launches):
        return None
    nested = _nest(slices)
    launch = _launches(launches, slices.start.size)
    tracks, track, of_records = _tracks(slices, records)
    return Trace(
        slices=_slices(slices, nested, track, launch),
        tracks=tracks,
        op_args=_op_args(slices, arguments),
        device_args=_device_args(slices, launches, arguments, nested.parent, launch),
        memory=_memory(records, of_records),
    )


def _are_certain(slices: Slices, launches: Launches) -> bool:
    """Whether the events tell which call launched which work, and when the work ended.

    They do not tell when the recorder stopped, as the file does. It waits for the device before,
    and the end of that wait is on the host: work that ends later may have no true end.
    """
    if not launches.works.size:
        return True
    told = launches.told[~np.isin(launches.told, _NO_LINK)]
    device = slices.kind == KINDS.index("device")
    last = int(slices.end[~device].max(initial=0))
    return np.unique(told).size == told.size and int(slices.end[device].max()) <= last + _SLACK


@dataclass(frozen=True, slots=True)
class _Nested:
    """The slices within each other; arrays have shape (n,)."""

    start: Ints
    duration: Ints
    parent: Ints
    depth: Ints
    self_time: Ints


def _nest(slices: Slices) -> _Nested:
    """Nest the tracks of the host; the work of a device lies side by side."""
    ranks = [_RANK.get(text, _RANK_OF_OTHERS) for text in slices.categories]
    rank = np.array(ranks, np.int64)[slices.category]
    track = slices.thread.astype(np.int64) * len(KINDS) + slices.kind
    device = slices.of_kind("device")
    if not device.size:
        nesting = nest(track, slices.start, slices.end, rank, bleed=ROUNDING_NS)
        duration = nesting.end - nesting.start
        return _Nested(nesting.start, duration, nesting.parent, nesting.depth, nesting.self_time)
    at = np.flatnonzero(slices.kind != KINDS.index("device"))
    nesting = nest(track[at], slices.start[at], slices.end[at], rank[at], bleed=ROUNDING_NS)
    size = slices.start.size
    start, duration = slices.start.copy(), slices.end - slices.start
    parent, depth = np.full(size, NONE, np.int64), np.zeros(size, np.int64)
    own = duration.copy()
    start[at], duration[at] = nesting.start, nesting.end - nesting.start
    parent[at] = np.where(nesting.parent == NONE, NONE, at[nesting.parent])
    depth[at], own[at] = nesting.depth, nesting.self_time
    return _Nested(start, duration, parent, depth, own)


def _launches(launches: Launches, size: int) -> Ints:
    """For device work the place of the call that launched it; NONE for all else."""
    launch = np.full(size, NONE, np.int64)
    real = ~np.isin(launches.told, _NO_LINK)
    calls, told = launches.calls[real], launches.told[real]
    if told.size:
        order = np.argsort(told)
        calls, told = calls[order], told[order]
        place = np.minimum(np.searchsorted(told, launches.asked), told.size - 1)
        launch[launches.works] = np.where(told[place] == launches.asked, calls[place], NONE)
    return launch


def _tracks(slices: Slices, records: Records) -> tuple[pl.DataFrame, Ints, Ints]:
    """The tracks, which of them each slice lies on, and each memory record."""
    key = slices.thread * np.uint32(len(KINDS)) + slices.kind
    of_records = records.thread * np.uint32(len(KINDS)) + np.uint32(KINDS.index("host"))
    size = len(slices.threads) * len(KINDS)
    used = (np.bincount(key, minlength=size) > 0) | (np.bincount(of_records, minlength=size) > 0)
    found = np.flatnonzero(used)
    number = np.cumsum(used) - 1
    threads, kinds = np.divmod(found, len(KINDS))
    tracks = {
        "id": np.arange(found.size),
        "kind": [KINDS[kind] for kind in kinds.tolist()],
        "thread": threads,
        "process": [""] * found.size,
        "tid": [str(slices.threads[thread][1]) for thread in threads.tolist()],
    }
    return _filled(schema.TRACKS, tracks), number[key], number[of_records]


def _slices(slices: Slices, nested: _Nested, track: Ints, launch: Ints) -> pl.DataFrame:
    unknown = pl.Series(~slices.known_end)
    return _filled(
        schema.SLICES,
        {
            "id": np.arange(slices.start.size, dtype=np.uint32),
            "category": _texts(slices.categories).gather(slices.category),
            "name": _texts(slices.names).gather(slices.name),
            "track": track,
            "start": nested.start,
            "duration": pl.Series(nested.duration).set(unknown, None),
            "parent": _places(nested.parent),
            "depth": np.minimum(nested.depth, np.iinfo(np.uint16).max),
            "self": pl.Series(nested.self_time).set(unknown, None),
            "launch": _places(launch),
        },
    )


def _op_args(slices: Slices, arguments: Arguments) -> pl.DataFrame:
    at = arguments.operators
    told: dict[str, Any] = {"id": at, "asynchronous": slices.asynchronous[at]}
    if arguments.shapes is not None:
        shape, shapes = arguments.shapes
        told["input_shapes"] = _texts(shapes).gather(shape)
    if arguments.overloads is not None:
        overload, overloads = arguments.overloads
        told["overload"] = _texts([text or None for text in overloads]).gather(overload)
    if arguments.flops is not None:
        flops = pl.Series(arguments.flops)
        told["flops"] = flops.set(flops == 0, None)
    return _filled(schema.OP_ARGS, told)


def _device_args(
    slices: Slices, launches: Launches, arguments: Arguments, parent: Ints, launch: Ints
) -> pl.DataFrame:
    at = launches.works
    if not at.size:
        return schema.DEVICE_ARGS.empty()
    operators = np.zeros(slices.start.size, bool)
    operators[arguments.operators] = True
    places = np.array(slices.threads, np.int64)[slices.thread[at]]
    operator = nearest(parent, operators, launch[at])
    told = {"id": at, "device": places[:, 0], "stream": places[:, 1], "operator": _places(operator)}
    return _filled(schema.DEVICE_ARGS, told)


def _memory(records: Records, track: Ints) -> pl.DataFrame:
    if not records.time.size:
        return schema.MEMORY.empty()
    told = {
        "time": records.time,
        "track": track,
        "bytes": records.bytes,
        "device_type": records.device_type,
        "failed": np.zeros(records.time.size, bool),
    }
    return _filled(schema.MEMORY, told)


def _texts(texts: list[Any]) -> pl.Series:
    return pl.Series(texts, dtype=pl.String).cast(schema.Name)


def _places(at: Ints) -> pl.Series:
    """Places of slices; null for none."""
    return pl.Series(np.maximum(at, 0).astype(np.uint32)).set(pl.Series(at == NONE), None)


def _filled(table: schema.Table, told: dict[str, Any]) -> pl.DataFrame:
    """A table of what is told; the rest is unknown."""
    columns = [pl.Series(name, values).cast(table.dtypes[name]) for name, values in told.items()]
    empty = table.empty().clear(columns[0].len())
    return empty.with_columns(columns)
