"""Parses sketches, which are traces drawn as text: rows of letters, a legend, and a time scale."""

import json
import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from selftime import schema
from selftime.errors import UsageError

CATEGORY_BY_SKETCH_LANE: Final = {
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
"""Maps a sketch row's label, such as `cpu`, to the event category of the slices drawn in the
row."""
DEVICE_WORK_SKETCH_LANES: Final = frozenset({"gpu", "copy", "fill"})
"""Labels of a sketch's rows that show device work: kernels, copies and memsets."""

_NAME_OF_MEMORY_LANE: Final = "memory"
_NS_PER_UNIT: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME_SCALE_PATTERN: Final = re.compile(r"(\d+(?:\.\d+)?) (ns|us|ms|s)")
_LANE_LINE_PATTERN: Final = re.compile(r"\s*(\w+) ([\w.]+)\s*\|(.*)")
_RUN_LINE_PATTERN: Final = re.compile(r"\s*run\s*\|(.*)")
_LEGEND_LINE_PATTERN: Final = re.compile(r"\s*(\w+)\s*=\s*(.+)")
_KEYS_ALLOWED_IN_LEGEND: Final = frozenset(
    {"name", "line", "launched_by"}.union(
        *(table.dtypes for name, table in schema.TABLES.items() if name.endswith("_args")),
        schema.MEMORY.dtypes,
    )
)
"""Keys that a sketch's legend may set for a letter: name, source line, launching call,
arguments."""


@dataclass(slots=True)
class SketchStroke:
    """One slice of a trace drawn as text: a run of equal letters in a row; times in ns."""

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
        return self.lane in DEVICE_WORK_SKETCH_LANES


@dataclass(slots=True)
class SketchMemoryMark:
    """A memory event drawn as one letter: an allocation if upper case, a release if lower case."""

    thread: str
    letter: str
    time_ns: int
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SketchDrawing:
    """A parsed sketch (a trace drawn as text): its slices and memory events, in order of time."""

    column: int = 10_000
    strokes: list[SketchStroke] = field(default_factory=list)
    marks: list[SketchMemoryMark] = field(default_factory=list)
    legend: dict[str, dict[str, str]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    """Metadata of the drawn trace about its machine and settings, such as `cores`; {} if none are
    given."""
    devices: list[dict[str, Any]] = field(default_factory=list)
    """Descriptions of the sketched devices, device 0 first."""
    run_lines: list[str] = field(default_factory=list)
    """Lines of the sketched ledger of the run, in order."""


def parse_sketch_drawing(text: str) -> SketchDrawing:
    """Parses a trace drawn as text; raises a UsageError for a line of unknown form."""
    drawing = SketchDrawing()
    for line in filter(str.strip, text.splitlines()):
        lane, legend = _LANE_LINE_PATTERN.fullmatch(line), _LEGEND_LINE_PATTERN.fullmatch(line)
        if run_line := _RUN_LINE_PATTERN.fullmatch(line):
            drawing.run_lines.append(run_line[1])
        elif lane:
            _add_slices_or_marks_of_lane(drawing, lane[1], lane[2], lane[3].removeprefix(" "))
        elif (
            legend
            and legend[1] == "column"
            and (scale := _TIME_SCALE_PATTERN.fullmatch(legend[2].strip()))
        ):
            drawing.column = int(float(scale[1]) * _NS_PER_UNIT[scale[2]])
        elif legend and legend[1] == "facts":
            drawing.facts = _parse_json_object(legend[2])
        elif legend and legend[1] == "device":
            drawing.devices.append(_parse_json_object(legend[2]))
        elif legend and len(legend[1]) == 1:
            drawing.legend[legend[1]] = _parse_legend_of_letter(legend[2])
        else:
            raise UsageError(f"a sketch cannot hold the line {line!r}: draw a lane or a legend")
    for stroke in drawing.strokes:
        stroke.start *= drawing.column
        stroke.duration *= drawing.column
        stroke.attributes = drawing.legend.get(stroke.letter, {})
    for mark in drawing.marks:
        mark.time_ns *= drawing.column
        mark.attributes = drawing.legend.get(mark.letter.upper(), {})
    drawing.strokes.sort(key=lambda stroke: stroke.start)
    drawing.marks.sort(key=lambda mark: mark.time_ns)
    return drawing


def _parse_json_object(text: str) -> dict[str, Any]:
    try:
        attributes = json.loads(text)
    except ValueError:
        attributes = None
    if not isinstance(attributes, dict):
        raise UsageError(f"a sketch states facts and devices as JSON objects, not {text!r}")
    return attributes


def _parse_legend_of_letter(text: str) -> dict[str, str]:
    name, *rest = (part.strip() for part in text.split("; "))
    attributes = {"name": name}
    for part in rest:
        key, _, value = part.partition("=")
        if key.strip() not in _KEYS_ALLOWED_IN_LEGEND:
            raise UsageError(f"a sketch cannot set `{key.strip()}`: name a column of a table")
        attributes[key.strip()] = value.strip()
    return attributes


def _add_slices_or_marks_of_lane(
    drawing: SketchDrawing, lane: str, thread: str, letters: str
) -> None:
    if lane == _NAME_OF_MEMORY_LANE:
        marks = [SketchMemoryMark(thread, c, at) for at, c in enumerate(letters) if c != " "]
        drawing.marks.extend(marks)
        return
    if lane not in CATEGORY_BY_SKETCH_LANE:
        raise UsageError(
            f"a sketch has no lane `{lane}`; it has "
            f"{', '.join([*CATEGORY_BY_SKETCH_LANE, _NAME_OF_MEMORY_LANE])}"
        )
    at = 0
    for letter, run in groupby(letters):
        width = len(list(run))
        if letter != " ":
            drawing.strokes.append(SketchStroke(lane, thread, letter, at, width))
        at += width
