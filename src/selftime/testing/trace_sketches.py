"""Converts sketches, which are traces drawn as text, to traces."""

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import schema
from selftime.nesting import NO_SLICE, nearest_ancestor, nest_slices
from selftime.testing.run_sketches import run_of_lines
from selftime.testing.sketch_drawing import (
    CATEGORY_BY_SKETCH_LANE,
    SketchDrawing,
    SketchStroke,
    parse_sketch_drawing,
)
from selftime.trace import Trace

_TRACK_KIND_BY_SKETCH_LANE: Final = {
    "python": "python",
    "gpu": "device",
    "copy": "device",
    "fill": "device",
    "sync": "device sync",
    "note": "device annotation",
    "overhead": "profiler",
}
"""Maps a sketch row's label to the kind of its track in the trace; other rows are host threads."""
_NESTING_RANK_BY_HOST_LANE: Final = {"mark": 0, "cpu": 1}
"""Nesting order of a sketch's host rows: at equal times, slices of a lower rank enclose the
others."""
_SOURCE_LINE_PATTERN: Final = re.compile(r"(.+):(\d+) (\S+)(?: (stack|definition))?")
_COLUMNS_NOT_SET_BY_LEGEND: Final = frozenset(
    {"id", "operator", "frame", "caller", "record", "module", "forward"}
)
"""Columns that hold ids of other slices, computed from the drawing; a sketch's legend cannot set
them."""


def sketch(
    text: str,
    *,
    metadata: dict[str, Any] | None = None,
    devices: Sequence[Mapping[str, Any]] = (),
) -> Trace:
    """Returns the trace that is drawn as text in `text`.

    `metadata` has the file's other keys, `devices` its descriptions of devices: columns of the
    table `devices`, device 0 first. Both add to what the sketch has.
    """
    drawing = parse_sketch_drawing(text)
    strokes = drawing.strokes
    tracks = _SketchTracks(drawing)
    slices = _slice_table(strokes, tracks)
    devices = [*drawing.devices, *devices]
    described = [{"id": n, "index": n, **device} for n, device in enumerate(devices)]
    told = {"selftime": drawing.facts} if drawing.facts else {}
    return Trace(
        slices=slices,
        tracks=tracks.track_table(),
        op_args=_operator_argument_table(strokes, slices),
        call_args=_runtime_call_argument_table(strokes, slices),
        frame_args=_frame_argument_table(strokes, slices),
        device_args=_device_argument_table(strokes, slices, len(devices)),
        collective_args=_collective_argument_table(strokes, slices),
        sync_args=_argument_table(
            schema.TABLES["sync_args"], strokes, _stroke_indexes_on_lanes(strokes, "sync")
        ),
        memory=_memory_table(drawing, tracks, slices),
        devices=_table_of_rows(schema.DEVICES, described),
        lines=_source_line_table(strokes),
        metadata=MappingProxyType({**told, **(metadata or {})}),
        source="(sketch)",
        run=run_of_lines(drawing.run_lines),
    )


class _SketchTracks:
    """The threads and streams of a trace drawn as text, numbered in order of appearance."""

    def __init__(self, drawing: SketchDrawing) -> None:
        self.threads: dict[str, int] = {}
        self.numbers: dict[tuple[str, str], int] = {}
        for stroke in drawing.strokes:
            self.track_number(stroke.thread, _TRACK_KIND_BY_SKETCH_LANE.get(stroke.lane, "host"))
        for mark in drawing.marks:
            self.track_number(mark.thread, "host")

    def track_number(self, thread: str, kind: str) -> int:
        self.threads.setdefault(thread, len(self.threads))
        return self.numbers.setdefault((thread, kind), len(self.numbers))

    def track_table(self) -> pl.DataFrame:
        rows = [
            (
                n,
                kind,
                self.threads[thread],
                "1",
                thread,
                None,
                None,
                *_device_and_stream(kind, thread),
            )
            for (thread, kind), n in self.numbers.items()
        ]
        return pl.DataFrame(rows, schema=dict(schema.TRACKS.dtypes), orient="row")


def _device_and_stream(kind: str, lane_name: str) -> tuple[int | None, int | None]:
    """Returns (device, stream) of a row label: `gpu 7` is (0, 7), and `gpu 1.7` is (1, 7)."""
    device, _, stream = lane_name.rpartition(".")
    if not kind.startswith("device") or not stream.isdigit():
        return None, None
    return int(device or 0), int(stream)


def _slice_table(strokes: list[SketchStroke], tracks: _SketchTracks) -> pl.DataFrame:
    track = [
        tracks.track_number(s.thread, _TRACK_KIND_BY_SKETCH_LANE.get(s.lane, "host"))
        for s in strokes
    ]
    start = np.array([s.start for s in strokes], np.int64)
    duration = np.array([s.duration for s in strokes], np.int64)
    rank = np.array([_NESTING_RANK_BY_HOST_LANE.get(s.lane, 2) for s in strokes], np.int64)
    nested = nest_slices(np.array(track, np.int64), start, start + duration, rank, rounding_ns=0)
    device = np.array([s.is_device_work for s in strokes], bool)
    parent = np.where(device, NO_SLICE, nested.parent)
    launch = _launch_call_index_by_device_stroke(strokes)
    columns: dict[str, Any] = {
        "id": range(len(strokes)),
        "category": [CATEGORY_BY_SKETCH_LANE[s.lane] for s in strokes],
        "name": [s.name for s in strokes],
        "track": track,
        "start": start,
        "duration": duration,
        "parent": [None if p == NO_SLICE else int(p) for p in parent],
        "depth": np.where(device, 0, nested.depth),
        "self": nested.self_time,
        "launch": [launch.get(at) for at in range(len(strokes))],
    }
    return _table_with_all_columns(schema.SLICES, columns)


def _table_with_all_columns(table: schema.Table, columns: Mapping[str, Any]) -> pl.DataFrame:
    height = len(next(iter(columns.values())))
    return pl.DataFrame(
        {
            c.name: pl.Series(c.name, list(columns[c.name])).cast(c.dtype)
            if c.name in columns
            else pl.repeat(None, height, dtype=c.dtype, eager=True)
            for c in table.columns
        }
    )


def _table_of_rows(table: schema.Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=table.dtypes) if rows else table.empty()


def _stroke_indexes_on_lanes(strokes: list[SketchStroke], *lanes: str) -> list[int]:
    return [at for at, s in enumerate(strokes) if s.lane in lanes]


def _argument_table(
    table: schema.Table, strokes: list[SketchStroke], stroke_indexes: list[int], **linked: list[Any]
) -> pl.DataFrame:
    """Returns a table of slice arguments: from the legend, or from `linked` for other columns."""
    if not stroke_indexes:
        return table.empty()
    columns: dict[str, Any] = {"id": stroke_indexes, **linked}
    for column in table.columns:
        told = [strokes[n].attributes.get(column.name) for n in stroke_indexes]
        if column.name not in _COLUMNS_NOT_SET_BY_LEGEND and any(
            value is not None for value in told
        ):
            known = linked.get(column.name, [None] * len(stroke_indexes))
            read = [_typed_legend_value(value, column) for value in told]
            columns[column.name] = [k if v is None else v for v, k in zip(read, known, strict=True)]
    return _table_with_all_columns(table, columns)


def _typed_legend_value(value_text: str | None, column: schema.Column) -> Any:
    """Parses a value of the legend as its column's type; a text remains unchanged."""
    if value_text is None or column.dtype in (pl.Categorical, pl.String):
        return value_text
    return json.loads(value_text)


def _launch_call_index_by_device_stroke(strokes: list[SketchStroke]) -> dict[int, int]:
    """Returns, by index of a device slice, the index of the runtime call that launched the slice.

    Unless the legend names a call, a letter's n-th call launched the letter's n-th device slice.
    """
    calls: dict[str, list[int]] = {}
    for at in _stroke_indexes_on_lanes(strokes, "call"):
        calls.setdefault(strokes[at].letter, []).append(at)
    unused = {letter: list(ids) for letter, ids in calls.items()}
    found = {}
    for at, s in enumerate(strokes):
        told = s.attributes.get("launched_by")
        if not s.is_device_work:
            continue
        if told is not None:
            earlier = [call for call in calls.get(told, []) if strokes[call].start <= s.start]
            found.update({at: earlier[-1]} if earlier else {})
        elif unused.get(s.letter):
            found[at] = unused[s.letter].pop(0)
    return found


def _operator_argument_table(strokes: list[SketchStroke], slices: pl.DataFrame) -> pl.DataFrame:
    at = _stroke_indexes_on_lanes(strokes, "cpu", "mark")
    frames = _innermost_enclosing_frames(strokes, slices, at)
    modules = [_innermost_module_frame(strokes, slices, frame) for frame in frames]
    linked: dict[str, list[Any]] = {
        "frame": frames,
        "module": modules,
        "forward": _forward_operator_indexes(strokes, at),
    }
    return _argument_table(schema.OP_ARGS, strokes, at, **linked)


def _forward_operator_indexes(
    strokes: list[SketchStroke], stroke_indexes: list[int]
) -> list[int | None]:
    """Returns the index of each slice's forward operator; None if the legend names none.

    The n-th slice of a letter gets the n-th slice of the letter that the legend names.
    """
    unused: dict[tuple[str, str], list[int]] = {}
    found: list[int | None] = []
    for n in stroke_indexes:
        letter, wanted = strokes[n].letter, strokes[n].attributes.get("forward")
        if wanted is None:
            found.append(None)
            continue
        left = unused.setdefault(
            (letter, wanted), [other for other in stroke_indexes if strokes[other].letter == wanted]
        )
        found.append(left.pop(0) if left else None)
    return found


def _innermost_enclosing_frames(
    strokes: list[SketchStroke], slices: pl.DataFrame, stroke_indexes: list[int]
) -> list[int | None]:
    """Returns for each slice the id of the innermost Python frame around it; None if none is."""
    python = _stroke_indexes_on_lanes(strokes, "python")
    ends = (slices["start"] + slices["duration"]).to_list()
    found: list[int | None] = []
    for n in stroke_indexes:
        around = [
            f
            for f in python
            if f != n
            and strokes[f].thread == strokes[n].thread
            and strokes[f].start <= strokes[n].start < ends[f]
        ]
        found.append(min(around, key=lambda f: strokes[f].duration) if around else None)
    return found


def _innermost_module_frame(
    strokes: list[SketchStroke], slices: pl.DataFrame, frame: int | None
) -> int | None:
    """Returns the id of the first nn.Module call from `frame` outwards; None if there is none."""
    parents = slices["parent"].to_list()
    while frame is not None and "module_id" not in strokes[frame].attributes:
        frame = parents[frame]
    return frame


def _innermost_enclosing_operators(
    strokes: list[SketchStroke], slices: pl.DataFrame, stroke_indexes: list[int]
) -> list[int | None]:
    """Returns for each slice the id of the innermost operator or annotation around it, or None."""
    parent = slices["parent"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    operators = np.array([s.lane in {"cpu", "mark"} for s in strokes], bool)
    found = nearest_ancestor(parent, operators, np.array(stroke_indexes, np.int64))
    return [None if f == NO_SLICE else int(f) for f in found]


def _runtime_call_argument_table(strokes: list[SketchStroke], slices: pl.DataFrame) -> pl.DataFrame:
    at = _stroke_indexes_on_lanes(strokes, "call")
    linked: dict[str, list[Any]] = {
        "correlation": [n + 1 for n in at],
        "operator": _innermost_enclosing_operators(strokes, slices, at),
        "frame": _innermost_enclosing_frames(strokes, slices, at),
    }
    return _argument_table(schema.CALL_ARGS, strokes, at, **linked)


def _frame_argument_table(strokes: list[SketchStroke], slices: pl.DataFrame) -> pl.DataFrame:
    at = _stroke_indexes_on_lanes(strokes, "python")
    parents = slices["parent"].to_list()
    return _argument_table(schema.FRAME_ARGS, strokes, at, caller=[parents[n] for n in at])


def _device_argument_table(
    strokes: list[SketchStroke], slices: pl.DataFrame, described_device_count: int
) -> pl.DataFrame:
    at = [n for n, s in enumerate(strokes) if s.is_device_work]
    launch = slices["launch"].to_list()
    linked = [launch[n] for n in at]
    known = sorted({call for call in linked if call is not None})
    operator = dict(zip(known, _innermost_enclosing_operators(strokes, slices, known), strict=True))
    places = [_device_and_stream("device", strokes[n].thread) for n in at]
    columns: dict[str, list[Any]] = {
        "device": [0 if device is None else device for device, _ in places],
        "properties": [
            device if (device or 0) < described_device_count else None for device, _ in places
        ],
        "stream": [stream for _, stream in places],
        "correlation": [None if call is None else call + 1 for call in linked],
        "operator": [None if call is None else operator[call] for call in linked],
    }
    return _argument_table(schema.DEVICE_ARGS, strokes, at, **columns)


def _collective_argument_table(strokes: list[SketchStroke], slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the collectives' arguments, with the host operator that issued each kernel."""
    at = [
        n
        for n, s in enumerate(strokes)
        if "collective" in s.attributes and s.lane in {"cpu", "gpu"}
    ]
    launch = slices["launch"].to_list()
    parents = slices["parent"].to_list()
    records = [_enclosing_collective(strokes, parents, launch[n]) for n in at]
    return _argument_table(schema.COLLECTIVE_ARGS, strokes, at, record=records)


def _enclosing_collective(
    strokes: list[SketchStroke], parent_of_stroke: list[int | None], stroke_index: int | None
) -> int | None:
    while stroke_index is not None and not (
        "collective" in strokes[stroke_index].attributes and strokes[stroke_index].lane == "cpu"
    ):
        stroke_index = parent_of_stroke[stroke_index]
    return stroke_index


def _memory_table(
    drawing: SketchDrawing, tracks: _SketchTracks, slices: pl.DataFrame
) -> pl.DataFrame:
    """Returns the trace's table of memory events: bytes of each one, and bytes then allocated."""
    totals: dict[tuple[int, int], int] = {}
    rows = []
    for mark in drawing.marks:
        told = {
            c.name: _typed_legend_value(mark.attributes.get(c.name), c)
            for c in schema.MEMORY.columns
        }
        place = (told["device_type"] or 0, -1 if told["device"] is None else told["device"])
        size = told["bytes"] or 1024
        change = size if mark.letter.isupper() else -size
        totals[place] = totals.get(place, 0) + change
        known = {
            "time": mark.time_ns,
            "track": tracks.track_number(mark.thread, "host"),
            "operator": _innermost_operator_at_time(
                drawing.strokes, slices, mark.thread, mark.time_ns
            ),
            "bytes": change,
            "address": told["address"] or ord(mark.letter.upper()),
            "allocated": totals[place],
            "device_type": place[0],
            "device": place[1],
            "failed": bool(told["failed"]),
        }
        rows.append({**told, **known})
    return _table_of_rows(schema.MEMORY, rows)


def _innermost_operator_at_time(
    strokes: list[SketchStroke], slices: pl.DataFrame, thread: str, time: int
) -> int | None:
    """Returns the index of the innermost operator or annotation of a thread at a time."""
    depth = slices["depth"].to_list()
    around = [
        at
        for at in _stroke_indexes_on_lanes(strokes, "cpu", "mark")
        if strokes[at].thread == thread
        and strokes[at].start <= time < strokes[at].start + strokes[at].duration
    ]
    return max(around, key=lambda at: depth[at]) if around else None


def _source_line_table(strokes: list[SketchStroke]) -> pl.DataFrame:
    rows = []
    for at, s in enumerate(strokes):
        told = _SOURCE_LINE_PATTERN.fullmatch(s.attributes.get("line", ""))
        if told:
            rows.append((at, told[1], int(told[2]), told[3], told[4] or "stack"))
    return pl.DataFrame(rows, schema=dict(schema.LINES.dtypes), orient="row")
