"""The source line of every operator, read from the recorder's event tree.

The tree is in memory only, and it knows what the trace does not: the line that the calling frame
was executing. An operator's line is that of the innermost user frame around it. If the frame called
something that the recorder saw, the executing line is known ("stack"). If the operator came
straight out of the frame, as `x + y` does, only the frame's definition line is ("definition"),
unless a step that ran under line marks tells more ("stamp", see `marks`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from torch._C._profiler import _ProfilerEvent

from selftime.capture.lines.line_marks import Marks
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.lines.walk import (
    DEFINITION,
    STACK,
    STAMP,
    OpenFrame,
    Place,
    Walk,
    fields_of,
    walk,
)

__all__ = [
    "DEFINITION",
    "STACK",
    "STAMP",
    "OpenFrame",
    "Place",
    "columns",
    "fields_of",
    "read_lines",
]


def read_lines(
    roots: Iterable[_ProfilerEvent],
    *,
    sources: SourceFiles,
    opened: Iterable[OpenFrame] = (),
    forward: Mapping[int, int],
    stamps: Marks | None = None,
) -> dict[int, Place]:
    """The line of every operator and annotation that has one, by its External id.

    `forward` tells the forward operator of a backward node, by External id; `stamps` what another
    step, under line marks, tells of lines that this recording does not know.
    """
    found = walk(roots, sources=sources, opened=opened)
    if stamps is not None:
        _stamp(found, stamps)
    return _settled(found, forward)


def _stamp(found: Walk, stamps: Marks) -> None:
    """Put lines in the place of definitions where the marked step tells them."""
    lines: dict[int, int] = {}
    for activation in found.activations:
        lines.update(stamps.lines_of(activation))
    inside = ((number, lines[outer]) for number, outer in found.inside.items() if outer in lines)
    for number, line in [*lines.items(), *inside]:
        place = found.places.get(number)
        if place is not None:
            found.places[number] = place._replace(line=line, how=STAMP)


def _settled(found: Walk, forward: Mapping[int, int]) -> dict[int, Place]:
    """The lines, with those of the backward pass taken from the forward operators."""
    places = found.places
    for number, node, place in found.waiting:
        made_by = forward.get(node)
        known = places.get(made_by) if made_by is not None else None
        if known or place:
            places[number] = known or place  # type: ignore[assignment]  # one is set
    return places


def columns(places: Mapping[int, Place]) -> dict[str, list[Any]]:
    """Lines as columns, with files and functions written once."""
    files: dict[str, int] = {}
    functions: dict[str, int] = {}
    rows = sorted(places.items())
    return {
        "id": [number for number, _ in rows],
        "file": [files.setdefault(place.file, len(files)) for _, place in rows],
        "line": [place.line for _, place in rows],
        "function": [functions.setdefault(place.function, len(functions)) for _, place in rows],
        "how": [place.how for _, place in rows],
        "files": list(files),
        "functions": list(functions),
    }
