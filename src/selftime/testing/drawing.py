"""Parse a sketch: its lanes, its legend, its time scale."""

import json
import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from selftime import schema
from selftime.errors import UsageError

CATEGORY: Final = {
    "cpu": "cpu_op",
    "mark": "user_annotation",
    "call": "cuda_runtime",
    "python": "python_function",
    "gpu": "kernel",
    "copy": "gpu_memcpy",
    "fill": "gpu_memset",
    "sync": "cuda_sync",
    "note": "gpu_user_annotation",
    "overhead": "overhead",
}
"""The category of slices by lane."""
DEVICE: Final = frozenset({"gpu", "copy", "fill"})
"""Lanes of device work."""

_MEMORY: Final = "memory"
_SCALES: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_SCALE: Final = re.compile(r"(\d+(?:\.\d+)?) (ns|us|ms|s)")
_LANE: Final = re.compile(r"\s*(\w+) ([\w.]+)\s*\|(.*)")
_LEGEND: Final = re.compile(r"\s*(\w+)\s*=\s*(.+)")
_LEGEND_KEYS: Final = frozenset(
    {"name", "line", "launched_by"}.union(
        *(table.dtypes for name, table in schema.TABLES.items() if name.endswith("_args")),
        schema.MEMORY.dtypes,
    )
)
"""Names that a legend can set for a letter."""


@dataclass(slots=True)
class Stroke:
    """A run of one letter on a lane: a slice, with times in ns."""

    lane: str
    thread: str
    letter: str
    start: int
    duration: int
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.attributes.get("name", self.letter)

    @property
    def is_device_work(self) -> bool:
        return self.lane in DEVICE


@dataclass(slots=True)
class Mark:
    """A letter on a memory lane: upper case allocates a block, lower case releases it."""

    thread: str
    letter: str
    time: int
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Drawing:
    """A parsed sketch, with slices and memory marks in order of time."""

    column: int = 10_000
    strokes: list[Stroke] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    legend: dict[str, dict[str, str]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    """The recording's facts about its machine and settings."""
    devices: list[dict[str, Any]] = field(default_factory=list)
    """Descriptions of devices, device 0 first."""


def parse_drawing(text: str) -> Drawing:
    """Returns the sketch in a text; raises a UsageError for a line that is not understood."""
    drawing = Drawing()
    for line in filter(str.strip, text.splitlines()):
        lane, legend = _LANE.fullmatch(line), _LEGEND.fullmatch(line)
        if lane:
            _read_lane(drawing, lane[1], lane[2], lane[3].removeprefix(" "))
        elif legend and legend[1] == "column" and (scale := _SCALE.fullmatch(legend[2].strip())):
            drawing.column = int(float(scale[1]) * _SCALES[scale[2]])
        elif legend and legend[1] == "facts":
            drawing.facts = _read_object(legend[2])
        elif legend and legend[1] == "device":
            drawing.devices.append(_read_object(legend[2]))
        elif legend and len(legend[1]) == 1:
            drawing.legend[legend[1]] = _read_legend(legend[2])
        else:
            raise UsageError(f"a sketch cannot hold the line {line!r}: draw a lane or a legend")
    for stroke in drawing.strokes:
        stroke.start *= drawing.column
        stroke.duration *= drawing.column
        stroke.attributes = drawing.legend.get(stroke.letter, {})
    for mark in drawing.marks:
        mark.time *= drawing.column
        mark.attributes = drawing.legend.get(mark.letter.upper(), {})
    drawing.strokes.sort(key=lambda stroke: stroke.start)
    drawing.marks.sort(key=lambda mark: mark.time)
    return drawing


def _read_object(text: str) -> dict[str, Any]:
    try:
        attributes = json.loads(text)
    except ValueError:
        attributes = None
    if not isinstance(attributes, dict):
        raise UsageError(f"a sketch states facts and devices as JSON objects, not {text!r}")
    return attributes


def _read_legend(text: str) -> dict[str, str]:
    name, *rest = (part.strip() for part in text.split("; "))
    attributes = {"name": name}
    for part in rest:
        key, _, value = part.partition("=")
        if key.strip() not in _LEGEND_KEYS:
            raise UsageError(f"a sketch cannot set `{key.strip()}`: name a column of a table")
        attributes[key.strip()] = value.strip()
    return attributes


def _read_lane(drawing: Drawing, lane: str, thread: str, drawn: str) -> None:
    if lane == _MEMORY:
        marks = [Mark(thread, c, at) for at, c in enumerate(drawn) if c != " "]
        drawing.marks.extend(marks)
        return
    if lane not in CATEGORY:
        raise UsageError(f"a sketch has no lane `{lane}`; it has {', '.join([*CATEGORY, _MEMORY])}")
    at = 0
    for letter, run in groupby(drawn):
        width = len(list(run))
        if letter != " ":
            drawing.strokes.append(Stroke(lane, thread, letter, at, width))
        at += width
