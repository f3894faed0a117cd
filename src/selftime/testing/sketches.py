"""Turn a sketch into a trace."""

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import schema
from selftime.nesting import NONE, nearest, nest
from selftime.testing.drawing import CATEGORY, Drawing, Stroke, parse_drawing
from selftime.trace import Trace

_KIND: Final = {
    "python": "python",
    "gpu": "device",
    "copy": "device",
    "fill": "device",
    "sync": "device sync",
    "note": "device annotation",
    "overhead": "profiler",
}
_RANK: Final = {"mark": 0, "cpu": 1}
_LINE: Final = re.compile(r"(.+):(\d+) (\S+)(?: (stack|definition))?")
_LINKS: Final = frozenset({"id", "operator", "frame", "caller", "record", "module", "forward"})
"""Columns that are linked automatically, not set by a legend."""


def sketch(
    text: str,
    *,
    metadata: dict[str, Any] | None = None,
    devices: Sequence[Mapping[str, Any]] = (),
) -> Trace:
    """Returns the trace that a sketch shows.

    `metadata` has the file's other keys, `devices` its descriptions of devices: columns of the
    table `devices`, device 0 first. Both add to what the sketch has.
    """
    drawing = parse_drawing(text)
    drawn = drawing.strokes
    tracks = _Tracks(drawing)
    slices = _slices(drawn, tracks)
    devices = [*drawing.devices, *devices]
    described = [{"id": n, "index": n, **device} for n, device in enumerate(devices)]
    told = {"selftime": drawing.facts} if drawing.facts else {}
    return Trace(
        slices=slices,
        tracks=tracks.table(),
        op_args=_op_args(drawn, slices),
        call_args=_call_args(drawn, slices),
        frame_args=_frame_args(drawn, slices),
        device_args=_device_args(drawn, slices, len(devices)),
        collective_args=_collective_args(drawn, slices),
        sync_args=_args(schema.TABLES["sync_args"], drawn, _lanes(drawn, "sync")),
        memory=_memory(drawing, tracks, slices),
        devices=_rows(schema.DEVICES, described),
        lines=_lines(drawn),
        metadata=MappingProxyType({**told, **(metadata or {})}),
        source="(sketch)",
    )


class _Tracks:
    """The tracks of a sketch, numbered in order of first appearance."""

    def __init__(self, drawing: Drawing) -> None:
        self.threads: dict[str, int] = {}
        self.numbers: dict[tuple[str, str], int] = {}
        for stroke in drawing.strokes:
            self.number(stroke.thread, _KIND.get(stroke.lane, "host"))
        for mark in drawing.marks:
            self.number(mark.thread, "host")

    def number(self, thread: str, kind: str) -> int:
        self.threads.setdefault(thread, len(self.threads))
        return self.numbers.setdefault((thread, kind), len(self.numbers))

    def table(self) -> pl.DataFrame:
        rows = [
            (n, kind, self.threads[thread], "1", thread, None, None, *_place(kind, thread))
            for (thread, kind), n in self.numbers.items()
        ]
        return pl.DataFrame(rows, schema=dict(schema.TRACKS.dtypes), orient="row")


def _place(kind: str, thread: str) -> tuple[int | None, int | None]:
    """Returns device and stream of a lane such as `gpu 7` or `gpu 1.7`."""
    device, _, stream = thread.rpartition(".")
    if not kind.startswith("device") or not stream.isdigit():
        return None, None
    return int(device or 0), int(stream)


def _slices(drawn: list[Stroke], tracks: _Tracks) -> pl.DataFrame:
    track = [tracks.number(s.thread, _KIND.get(s.lane, "host")) for s in drawn]
    start = np.array([s.start for s in drawn], np.int64)
    duration = np.array([s.duration for s in drawn], np.int64)
    rank = np.array([_RANK.get(s.lane, 2) for s in drawn], np.int64)
    nested = nest(np.array(track, np.int64), start, start + duration, rank, bleed=0)
    device = np.array([s.is_device_work for s in drawn], bool)
    parent = np.where(device, NONE, nested.parent)
    launch = _launches(drawn)
    columns: dict[str, Any] = {
        "id": range(len(drawn)),
        "category": [CATEGORY[s.lane] for s in drawn],
        "name": [s.name for s in drawn],
        "track": track,
        "start": start,
        "duration": duration,
        "parent": [None if p == NONE else int(p) for p in parent],
        "depth": np.where(device, 0, nested.depth),
        "self": nested.self_time,
        "launch": [launch.get(at) for at in range(len(drawn))],
    }
    return _frame(schema.SLICES, columns)


def _frame(table: schema.Table, columns: Mapping[str, Any]) -> pl.DataFrame:
    height = len(next(iter(columns.values())))
    return pl.DataFrame(
        {
            c.name: pl.Series(c.name, list(columns[c.name])).cast(c.dtype)
            if c.name in columns
            else pl.repeat(None, height, dtype=c.dtype, eager=True)
            for c in table.columns
        }
    )


def _rows(table: schema.Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=table.dtypes) if rows else table.empty()


def _lanes(drawn: list[Stroke], *lanes: str) -> list[int]:
    return [at for at, s in enumerate(drawn) if s.lane in lanes]


def _args(
    table: schema.Table, drawn: list[Stroke], at: list[int], **linked: list[Any]
) -> pl.DataFrame:
    """Returns a table of arguments for these slices: legend values, and linked columns."""
    if not at:
        return table.empty()
    columns: dict[str, Any] = {"id": at, **linked}
    for column in table.columns:
        told = [drawn[n].attributes.get(column.name) for n in at]
        if column.name not in _LINKS and any(value is not None for value in told):
            known = linked.get(column.name, [None] * len(at))
            read = [_value(value, column) for value in told]
            columns[column.name] = [k if v is None else v for v, k in zip(read, known, strict=True)]
    return _frame(table, columns)


def _value(text: str | None, column: schema.Column) -> Any:
    """Returns a legend value in its column's type; text stays as written."""
    if text is None or column.dtype in (pl.Categorical, pl.String):
        return text
    return json.loads(text)


def _launches(drawn: list[Stroke]) -> dict[int, int]:
    """Returns the launch of device slices: the n-th slice of a letter has its n-th call."""
    calls: dict[str, list[int]] = {}
    for at in _lanes(drawn, "call"):
        calls.setdefault(drawn[at].letter, []).append(at)
    unused = {letter: list(ids) for letter, ids in calls.items()}
    found = {}
    for at, s in enumerate(drawn):
        told = s.attributes.get("launched_by")
        if not s.is_device_work:
            continue
        if told is not None:
            earlier = [call for call in calls.get(told, []) if drawn[call].start <= s.start]
            found.update({at: earlier[-1]} if earlier else {})
        elif unused.get(s.letter):
            found[at] = unused[s.letter].pop(0)
    return found


def _op_args(drawn: list[Stroke], slices: pl.DataFrame) -> pl.DataFrame:
    at = _lanes(drawn, "cpu", "mark")
    frames = _frames(drawn, slices, at)
    modules = [_module(drawn, slices, frame) for frame in frames]
    linked: dict[str, list[Any]] = {
        "frame": frames,
        "module": modules,
        "forward": _forward(drawn, at),
    }
    return _args(schema.OP_ARGS, drawn, at, **linked)


def _forward(drawn: list[Stroke], at: list[int]) -> list[int | None]:
    """Returns forward links: the n-th slice of a letter with `forward = f` has the n-th `f`."""
    unused: dict[tuple[str, str], list[int]] = {}
    found: list[int | None] = []
    for n in at:
        letter, wanted = drawn[n].letter, drawn[n].attributes.get("forward")
        if wanted is None:
            found.append(None)
            continue
        left = unused.setdefault(
            (letter, wanted), [other for other in at if drawn[other].letter == wanted]
        )
        found.append(left.pop(0) if left else None)
    return found


def _frames(drawn: list[Stroke], slices: pl.DataFrame, at: list[int]) -> list[int | None]:
    """Returns the shortest other Python frame on the thread that encloses each slice."""
    python = _lanes(drawn, "python")
    ends = (slices["start"] + slices["duration"]).to_list()
    found: list[int | None] = []
    for n in at:
        around = [
            f
            for f in python
            if f != n
            and drawn[f].thread == drawn[n].thread
            and drawn[f].start <= drawn[n].start < ends[f]
        ]
        found.append(min(around, key=lambda f: drawn[f].duration) if around else None)
    return found


def _module(drawn: list[Stroke], slices: pl.DataFrame, frame: int | None) -> int | None:
    """Returns the frame itself or its nearest enclosing frame of a module."""
    parents = slices["parent"].to_list()
    while frame is not None and "module_id" not in drawn[frame].attributes:
        frame = parents[frame]
    return frame


def _around(drawn: list[Stroke], slices: pl.DataFrame, at: list[int]) -> list[int | None]:
    """Returns the innermost operator or annotation around each of these host slices."""
    parent = slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    operators = np.array([s.lane in {"cpu", "mark"} for s in drawn], bool)
    found = nearest(parent, operators, np.array(at, np.int64))
    return [None if f == NONE else int(f) for f in found]


def _call_args(drawn: list[Stroke], slices: pl.DataFrame) -> pl.DataFrame:
    at = _lanes(drawn, "call")
    linked: dict[str, list[Any]] = {
        "correlation": [n + 1 for n in at],
        "operator": _around(drawn, slices, at),
        "frame": _frames(drawn, slices, at),
    }
    return _args(schema.CALL_ARGS, drawn, at, **linked)


def _frame_args(drawn: list[Stroke], slices: pl.DataFrame) -> pl.DataFrame:
    at = _lanes(drawn, "python")
    parents = slices["parent"].to_list()
    return _args(schema.FRAME_ARGS, drawn, at, caller=[parents[n] for n in at])


def _device_args(drawn: list[Stroke], slices: pl.DataFrame, described: int) -> pl.DataFrame:
    at = [n for n, s in enumerate(drawn) if s.is_device_work]
    launch = slices["launch"].to_list()
    linked = [launch[n] for n in at]
    known = sorted({call for call in linked if call is not None})
    operator = dict(zip(known, _around(drawn, slices, known), strict=True))
    places = [_place("device", drawn[n].thread) for n in at]
    columns: dict[str, list[Any]] = {
        "device": [0 if device is None else device for device, _ in places],
        "properties": [device if (device or 0) < described else None for device, _ in places],
        "stream": [stream for _, stream in places],
        "correlation": [None if call is None else call + 1 for call in linked],
        "operator": [None if call is None else operator[call] for call in linked],
    }
    return _args(schema.DEVICE_ARGS, drawn, at, **columns)


def _collective_args(drawn: list[Stroke], slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the arguments of slices with a `collective`; kernels link to their record."""
    at = [
        n for n, s in enumerate(drawn) if "collective" in s.attributes and s.lane in {"cpu", "gpu"}
    ]
    launch = slices["launch"].to_list()
    parents = slices["parent"].to_list()
    records = [_record(drawn, parents, launch[n]) for n in at]
    return _args(schema.COLLECTIVE_ARGS, drawn, at, record=records)


def _record(drawn: list[Stroke], parents: list[int | None], at: int | None) -> int | None:
    while at is not None and not ("collective" in drawn[at].attributes and drawn[at].lane == "cpu"):
        at = parents[at]
    return at


def _memory(drawing: Drawing, tracks: _Tracks, slices: pl.DataFrame) -> pl.DataFrame:
    """Returns memory records: upper case allocates, lower case releases, with running totals."""
    totals: dict[tuple[int, int], int] = {}
    rows = []
    for mark in drawing.marks:
        told = {c.name: _value(mark.attributes.get(c.name), c) for c in schema.MEMORY.columns}
        place = (told["device_type"] or 0, -1 if told["device"] is None else told["device"])
        size = told["bytes"] or 1024
        change = size if mark.letter.isupper() else -size
        totals[place] = totals.get(place, 0) + change
        known = {
            "time": mark.time,
            "track": tracks.number(mark.thread, "host"),
            "operator": _open_operator(drawing.strokes, slices, mark.thread, mark.time),
            "bytes": change,
            "address": told["address"] or ord(mark.letter.upper()),
            "allocated": totals[place],
            "device_type": place[0],
            "device": place[1],
            "failed": bool(told["failed"]),
        }
        rows.append({**told, **known})
    return _rows(schema.MEMORY, rows)


def _open_operator(drawn: list[Stroke], slices: pl.DataFrame, thread: str, time: int) -> int | None:
    """Returns the deepest operator or annotation of a thread that is open at a time."""
    depth = slices["depth"].to_list()
    around = [
        at
        for at in _lanes(drawn, "cpu", "mark")
        if drawn[at].thread == thread
        and drawn[at].start <= time < drawn[at].start + drawn[at].duration
    ]
    return max(around, key=lambda at: depth[at]) if around else None


def _lines(drawn: list[Stroke]) -> pl.DataFrame:
    rows = []
    for at, s in enumerate(drawn):
        told = _LINE.fullmatch(s.attributes.get("line", ""))
        if told:
            rows.append((at, told[1], int(told[2]), told[3], told[4] or "stack"))
    return pl.DataFrame(rows, schema=dict(schema.LINES.dtypes), orient="row")
