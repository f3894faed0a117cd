"""A recording in memory as a trace: the tables that the view `operators` draws from.

Its numbers are those of the trace file that would be written of it, at a fraction of the time.
Source lines, stacks and what else that view does not ask for are left out.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray
from torch._C._autograd import _KinetoEvent

from selftime import names, schema
from selftime.capture.held.events import Events, are_readable
from selftime.capture.held.slices import KINDS, NO_DEVICE, Records, Slices, read
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

__all__ = ["Wanted", "read_tables"]

Ints = NDArray[np.int64]

_NO_LINK: Final = (0, -1)
"""Correlations that stand for none."""
_SLACK: Final = 1_000_000
"""Clocks of host and device may disagree by up to 1 ms."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which arguments of operators are read besides: each costs a question to each of them."""

    shapes: bool = False
    overloads: bool = False
    flops: bool = False


def read_tables(results: Any, wanted: Wanted) -> Trace | None:
    """The tables of a recording, from what torch's profiler holds of it.

    None where only the trace file tells: PyTorch does not answer what is asked, a name is not
    UTF-8, a call shares its number with another, or work may have ended after the recorder.
    """
    if not are_readable():
        return None
    events = Events(results)
    try:
        slices, records = read(events)
    except UnicodeDecodeError:
        return None
    launch = _launches(events, slices)
    if launch is None or _may_end_late(slices):
        return None
    tracks, track, of_records = _tracks(slices, records)
    name = _texts(slices.names).gather(slices.name)
    return Trace(
        slices=_slices(slices, name, track, launch),
        tracks=tracks,
        op_args=_op_args(events, slices, wanted),
        device_args=_device_args(slices, launch),
        memory=_memory(records, of_records),
    )


def _launches(events: Events, slices: Slices) -> Ints | None:
    """For device work the place of the call that launched it, else NONE; None if not certain."""
    launch = np.full(slices.start.size, NONE, np.int64)
    works = np.flatnonzero(slices.is_kind("device"))
    if not works.size:
        return launch
    calls = np.flatnonzero(slices.is_in(names.CALLS))
    wanted = events.numbers(_KinetoEvent.correlation_id, np.int64, calls)
    asked = events.numbers(_KinetoEvent.correlation_id, np.int64, works)
    real = ~np.isin(wanted, _NO_LINK)
    calls, wanted = calls[real], wanted[real]
    order = np.argsort(wanted, kind="stable")
    calls, wanted = calls[order], wanted[order]
    if (np.diff(wanted) == 0).any():
        return None
    if wanted.size:
        place = np.minimum(np.searchsorted(wanted, asked), wanted.size - 1)
        launch[works] = np.where(wanted[place] == asked, calls[place], NONE)
    return launch


def _may_end_late(slices: Slices) -> bool:
    """Whether work seems to end after the recorder, whose end the events do not tell.

    The recorder waits for the device before it stops: the end of that wait is on the host.
    """
    device = slices.is_kind("device")
    if not device.any():
        return False
    last = int(slices.end[~device].max(initial=0))
    return int(slices.end[device].max()) > last + _SLACK


def _tracks(slices: Slices, records: Records) -> tuple[pl.DataFrame, Ints, Ints]:
    """The tracks, which of them each slice lies on, and each memory record."""
    device = np.append(slices.device, np.full(records.lane.size, NO_DEVICE))
    lane = np.append(slices.lane, records.lane)
    kind = np.append(slices.kind, np.full(records.lane.size, KINDS.index("host"), np.uint8))
    lanes, code = np.unique(lane, return_inverse=True)
    places, thread = np.unique((device - NO_DEVICE) * lanes.size + code, return_inverse=True)
    found, track = np.unique(thread * len(KINDS) + kind, return_inverse=True)
    threads, kinds = np.divmod(found, len(KINDS))
    tracks = _filled(
        schema.TRACKS,
        {
            "id": np.arange(found.size),
            "kind": pl.Series([KINDS[kind] for kind in kinds.tolist()], dtype=pl.String),
            "thread": threads,
            "process": pl.repeat("", found.size, eager=True),
            "tid": pl.Series(lanes[places[threads] % max(lanes.size, 1)]).cast(pl.String),
        },
    )
    return tracks, track[: slices.start.size], track[slices.start.size :]


def _slices(slices: Slices, name: pl.Series, track: Ints, launch: Ints) -> pl.DataFrame:
    unknown = pl.Series(~slices.known_end)
    return _filled(
        schema.SLICES,
        {
            "id": np.arange(slices.start.size),
            "category": _texts(slices.categories).gather(slices.category),
            "name": name,
            "track": track,
            "start": slices.start,
            "duration": pl.Series(slices.end - slices.start).set(unknown, None),
            "parent": _places(slices.parent),
            "depth": np.minimum(slices.depth, np.iinfo(np.uint16).max),
            "self": pl.Series(slices.self_time).set(unknown, None),
            "launch": _places(launch),
        },
    )


def _op_args(events: Events, slices: Slices, wanted: Wanted) -> pl.DataFrame:
    at = np.flatnonzero(slices.is_in((*names.OPERATORS, *names.ANNOTATIONS)))
    told: dict[str, Any] = {"id": at, "asynchronous": slices.asynchronous[at]}
    if wanted.shapes:
        codes, shapes = events.texts(lambda event: str(event.shapes()), at)
        told["input_shapes"] = _texts(shapes).gather(codes)
    if wanted.overloads:
        codes, overloads = events.texts(_KinetoEvent.overload_name, at)
        told["overload"] = _texts([text or None for text in overloads]).gather(codes)
    if wanted.flops:
        flops = pl.Series(events.numbers(_KinetoEvent.flops, np.int64, at))
        told["flops"] = flops.set(flops == 0, None)
    return _filled(schema.OP_ARGS, told)


def _device_args(slices: Slices, launch: Ints) -> pl.DataFrame:
    at = np.flatnonzero(slices.is_kind("device"))
    operators = slices.is_in((*names.OPERATORS, *names.ANNOTATIONS))
    return _filled(
        schema.DEVICE_ARGS,
        {
            "id": at,
            "device": slices.device[at],
            "stream": slices.lane[at],
            "operator": _places(nearest(slices.parent, operators, launch[at])),
        },
    )


def _memory(records: Records, track: Ints) -> pl.DataFrame:
    return _filled(
        schema.MEMORY,
        {
            "time": records.time,
            "track": track,
            "bytes": records.bytes,
            "device_type": records.device_type,
            "failed": np.zeros(records.time.size, bool),
        },
    )


def _texts(texts: list[Any]) -> pl.Series:
    return pl.Series(texts, dtype=pl.String).cast(schema.Name)


def _places(at: Ints) -> pl.Series:
    """Places of slices; null for none."""
    return pl.Series(np.maximum(at, 0)).set(pl.Series(at == NONE), None)


def _filled(table: schema.Table, told: dict[str, Any]) -> pl.DataFrame:
    """A table of what is told; the rest is unknown."""
    height = len(told[table.columns[0].name])
    columns = []
    for column in table.columns:
        values = told.get(column.name)
        if values is None:
            values = pl.repeat(None, height, dtype=column.dtype, eager=True)
        columns.append(pl.Series(column.name, values).cast(column.dtype))
    return pl.DataFrame(columns)
