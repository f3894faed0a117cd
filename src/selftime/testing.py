"""Sketches: whole traces drawn as text, for tests and for the pages of the rules.

A line is a lane, a column is 10 us, a run of one letter is one slice. Lanes of the same name nest:

    mark 1   | ssssssssss        annotations on thread 1
    cpu 1    | aaaa bbbb         operators
    call 1   |  k    k           calls of the runtime
    python 1 | ffffffffff        Python frames
    gpu 7    |    kkk  kkk       work on stream 7: the n-th `k` is launched by the n-th `k` call

Lines with `=` say what letters stand for, and `column = 1 ms` sets the scale:

    a = aten::mm; input_types = ["double", "double"]; line = train.py:12 step

>>> sketch("cpu 1 | aa b").slices.select("name", "start", "duration").rows()
[('a', 0, 20000), ('b', 30000, 10000)]
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import polars as pl

from selftime import schema
from selftime.errors import UsageError
from selftime.nesting import NONE, nearest, nest
from selftime.trace import Trace

__all__ = ["Judge", "sketch"]

F = TypeVar("F")
Judge: TypeAlias = Callable[[str], list[F]]
"""A rule applied to a drawing."""

_CATEGORY: Final = {
    "cpu": "cpu_op",
    "mark": "user_annotation",
    "call": "cuda_runtime",
    "python": "python_function",
    "gpu": "kernel",
    "copy": "gpu_memcpy",
}
_KIND: Final = {"python": "python", "gpu": "device", "copy": "device"}
_RANK: Final = {"mark": 0, "cpu": 1}
_SCALES: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_SCALE: Final = re.compile(r"(\d+(?:\.\d+)?) (ns|us|ms|s)")
_LANE: Final = re.compile(r"\s*(\w+) (\w+)\s*\|(.*)")
_LEGEND: Final = re.compile(r"\s*(\w+)\s*=\s*(.+)")
_LINE: Final = re.compile(r"(.+):(\d+) (\S+)(?: (stack|definition))?")


@dataclass(slots=True)
class _Slice:
    lane: str
    thread: str
    letter: str
    start: int
    duration: int


@dataclass(slots=True)
class _Drawing:
    column: int = 10_000
    slices: list[_Slice] = field(default_factory=list)
    legend: dict[str, dict[str, str]] = field(default_factory=dict)


def sketch(text: str, *, metadata: dict[str, Any] | None = None) -> Trace:
    """The trace that a drawing shows; `metadata` stands for the file's other keys."""
    drawing = _read(text)
    drawn = sorted(drawing.slices, key=lambda s: s.start)
    threads = {t: n for n, t in enumerate(dict.fromkeys(s.thread for s in drawn))}
    keys = {k: n for n, k in enumerate(dict.fromkeys(_track(s) for s in drawn))}
    slices = _slices(drawing, drawn, [keys[_track(s)] for s in drawn])
    tracks = [
        (n, kind, threads[thread], "1", thread, None, None, *_place(kind, thread))
        for (thread, kind), n in keys.items()
    ]
    return Trace(
        slices=slices,
        tracks=pl.DataFrame(tracks, schema=dict(schema.TRACKS.dtypes), orient="row"),
        op_args=_op_args(drawing, drawn, slices),
        call_args=_call_args(drawn, slices),
        device_args=_device_args(drawn, slices),
        lines=_lines(drawing, drawn),
        metadata=MappingProxyType(metadata or {}),
        source="(sketch)",
    )


def _read(text: str) -> _Drawing:
    drawing = _Drawing()
    for line in filter(str.strip, text.splitlines()):
        lane, legend = _LANE.fullmatch(line), _LEGEND.fullmatch(line)
        if lane:
            _read_lane(drawing, lane[1], lane[2], lane[3].removeprefix(" "))
        elif legend and legend[1] == "column" and (scale := _SCALE.fullmatch(legend[2].strip())):
            drawing.column = int(float(scale[1]) * _SCALES[scale[2]])
        elif legend and len(legend[1]) == 1:
            name, *rest = (part.strip() for part in legend[2].split("; "))
            pairs = (part.split("=", 1) for part in rest)
            drawing.legend[legend[1]] = {"name": name, **{k.strip(): v.strip() for k, v in pairs}}
        else:
            raise UsageError(f"a sketch cannot hold the line {line!r}: draw a lane or a legend")
    for slice_ in drawing.slices:
        slice_.start *= drawing.column
        slice_.duration *= drawing.column
    return drawing


def _read_lane(drawing: _Drawing, lane: str, thread: str, drawn: str) -> None:
    if lane not in _CATEGORY:
        raise UsageError(f"a sketch has no lane `{lane}`; it has {', '.join(_CATEGORY)}")
    at = 0
    for letter, run in groupby(drawn):
        width = len(list(run))
        if letter != " ":
            drawing.slices.append(_Slice(lane, thread, letter, at, width))
        at += width


def _track(slice_: _Slice) -> tuple[str, str]:
    return slice_.thread, _KIND.get(slice_.lane, "host")


def _place(kind: str, thread: str) -> tuple[int | None, int | None]:
    return (0, int(thread)) if kind == "device" and thread.isdigit() else (None, None)


def _slices(drawing: _Drawing, drawn: list[_Slice], track: list[int]) -> pl.DataFrame:
    start = np.array([s.start for s in drawn], np.int64)
    duration = np.array([s.duration for s in drawn], np.int64)
    rank = np.array([_RANK.get(s.lane, 2) for s in drawn], np.int64)
    nested = nest(np.array(track, np.int64), start, start + duration, rank, bleed=0)
    device = np.array([_KIND.get(s.lane) == "device" for s in drawn], bool)
    parent = np.where(device, NONE, nested.parent)
    launch = _launches(drawn)
    columns: dict[str, Any] = {
        "id": range(len(drawn)),
        "category": [_CATEGORY[s.lane] for s in drawn],
        "name": [drawing.legend.get(s.letter, {}).get("name", s.letter) for s in drawn],
        "track": track,
        "start": start,
        "duration": duration,
        "parent": [None if p == NONE else int(p) for p in parent],
        "depth": np.where(device, 0, nested.depth),
        "self": nested.self_time,
        "launch": [launch.get(at) for at in range(len(drawn))],
    }
    return _frame(schema.SLICES, columns)


def _frame(table: schema.Table, columns: dict[str, Any]) -> pl.DataFrame:
    height = len(next(iter(columns.values())))
    return pl.DataFrame(
        {
            c.name: pl.Series(c.name, list(columns[c.name])).cast(c.dtype)
            if c.name in columns
            else pl.repeat(None, height, dtype=c.dtype, eager=True)
            for c in table.columns
        }
    )


def _launches(drawn: list[_Slice]) -> dict[int, int]:
    """The n-th device slice of a letter is launched by the n-th call of that letter."""
    calls: dict[str, list[int]] = {}
    for at, s in enumerate(drawn):
        if s.lane == "call":
            calls.setdefault(s.letter, []).append(at)
    found = {}
    for at, s in enumerate(drawn):
        if _KIND.get(s.lane) == "device" and calls.get(s.letter):
            found[at] = calls[s.letter].pop(0)
    return found


def _op_args(drawing: _Drawing, drawn: list[_Slice], slices: pl.DataFrame) -> pl.DataFrame:
    at = [n for n, s in enumerate(drawn) if s.lane in {"cpu", "mark"}]
    if not at:
        return schema.OP_ARGS.empty()
    told = ("input_shapes", "input_types", "input_strides", "concrete_inputs", "call_stack")
    columns: dict[str, Any] = {"id": at}
    for name in told:
        values = [drawing.legend.get(drawn[n].letter, {}).get(name) for n in at]
        if any(value is not None for value in values):
            columns[name] = values
    frames = _frames(drawn, slices, at)
    if any(frame is not None for frame in frames):
        columns["frame"] = frames
    return _frame(schema.OP_ARGS, columns)


def _frames(drawn: list[_Slice], slices: pl.DataFrame, at: list[int]) -> list[int | None]:
    """The shortest Python frame on the thread that holds each operator."""
    python = [n for n, s in enumerate(drawn) if s.lane == "python"]
    starts, ends = slices["start"].to_list(), (slices["start"] + slices["duration"]).to_list()
    found: list[int | None] = []
    for n in at:
        around = [
            f
            for f in python
            if drawn[f].thread == drawn[n].thread and starts[f] <= starts[n] < ends[f]
        ]
        found.append(min(around, key=lambda f: ends[f] - starts[f]) if around else None)
    return found


def _around(drawn: list[_Slice], slices: pl.DataFrame, at: list[int]) -> list[int | None]:
    """The innermost operator or annotation around each of these host slices."""
    parent = slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    operators = np.array([s.lane in {"cpu", "mark"} for s in drawn], bool)
    found = nearest(parent, operators, np.array(at, np.int64))
    return [None if f == NONE else int(f) for f in found]


def _call_args(drawn: list[_Slice], slices: pl.DataFrame) -> pl.DataFrame:
    at = [n for n, s in enumerate(drawn) if s.lane == "call"]
    if not at:
        return schema.CALL_ARGS.empty()
    operators = _around(drawn, slices, at)
    return _frame(
        schema.CALL_ARGS, {"id": at, "correlation": [n + 1 for n in at], "operator": operators}
    )


def _device_args(drawn: list[_Slice], slices: pl.DataFrame) -> pl.DataFrame:
    at = [n for n, s in enumerate(drawn) if _KIND.get(s.lane) == "device"]
    if not at:
        return schema.DEVICE_ARGS.empty()
    launch = slices["launch"].to_list()
    linked = [launch[n] for n in at]
    known = [call for call in linked if call is not None]
    operator = dict(zip(known, _around(drawn, slices, known), strict=True)) if known else {}
    columns = {
        "id": at,
        "device": [0] * len(at),
        "stream": [int(drawn[n].thread) if drawn[n].thread.isdigit() else None for n in at],
        "correlation": [None if call is None else call + 1 for call in linked],
        "operator": [operator.get(call) for call in linked],
    }
    return _frame(schema.DEVICE_ARGS, columns)


def _lines(drawing: _Drawing, drawn: list[_Slice]) -> pl.DataFrame:
    rows = []
    for at, s in enumerate(drawn):
        told = _LINE.fullmatch(drawing.legend.get(s.letter, {}).get("line", ""))
        if told:
            rows.append((at, told[1], int(told[2]), told[3], told[4] or "stack"))
    return pl.DataFrame(rows, schema=dict(schema.LINES.dtypes), orient="row")
