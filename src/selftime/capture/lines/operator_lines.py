"""Finds the source line of every operator, from the profiler's event tree.

The tree exists in memory only and contains what the trace file lacks: the line that the calling
frame was executing. An operator's line is that of the innermost user frame around it. If the frame
made a call that was recorded, the executing line is known ("stack"). If the frame called the
operator directly, as for `x + y`, only the first line of its function is known ("definition"),
unless a step under line marks contains the line ("stamp", see `marked_lines`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from torch._C._profiler import _ProfilerEvent

from selftime.capture.lines.event_tree import (
    LINE_FROM_DEFINITION,
    LINE_FROM_MARKED_STEP,
    LINE_FROM_STACK,
    EventTreeWalk,
    RunningFrame,
    SourceLine,
    extra_fields,
    walk_event_tree,
)
from selftime.capture.lines.marked_lines import MarkedLines
from selftime.capture.lines.sources import SourceFiles

__all__ = [
    "LINE_FROM_DEFINITION",
    "LINE_FROM_MARKED_STEP",
    "LINE_FROM_STACK",
    "RunningFrame",
    "SourceLine",
    "extra_fields",
    "read_operator_lines",
    "source_line_columns",
]


def read_operator_lines(
    roots: Iterable[_ProfilerEvent],
    *,
    sources: SourceFiles,
    running_frames: Iterable[RunningFrame] = (),
    forward_operator: Mapping[int, int],
    marked_lines: MarkedLines | None = None,
) -> dict[int, SourceLine]:
    """Returns the source line of each operator and annotation, if known, by External id.

    Args:
        roots: The roots of the event tree.
        sources: Decides which files are the user's.
        running_frames: The frames that ran when recording began.
        forward_operator: The forward operator of each backward node, both by External id.
        marked_lines: The lines of a marked step, for operators whose line is not recorded.
    """
    walk = walk_event_tree(roots, sources=sources, running_frames=running_frames)
    if marked_lines is not None:
        _use_lines_of_marked_step(walk, marked_lines)
    return _lines_with_those_of_backward(walk, forward_operator)


def _use_lines_of_marked_step(walk: EventTreeWalk, marked_lines: MarkedLines) -> None:
    """Replaces operators' lines by the exact lines known from the marked step."""
    lines: dict[int, int] = {}
    for activation in walk.activations:
        lines.update(marked_lines.certain_operator_lines(activation))
    nested = (
        (operator_id, lines[outermost])
        for operator_id, outermost in walk.outermost_operator.items()
        if outermost in lines
    )
    for operator_id, line in [*lines.items(), *nested]:
        known = walk.lines.get(operator_id)
        if known is not None:
            walk.lines[operator_id] = known._replace(line=line, how=LINE_FROM_MARKED_STEP)


def _lines_with_those_of_backward(
    walk: EventTreeWalk, forward_operator: Mapping[int, int]
) -> dict[int, SourceLine]:
    """Returns {External id: source line}; a backward operator gets its forward operator's line."""
    lines = walk.lines
    for operator_id, backward_node, stack_line in walk.backward_operators:
        forward = forward_operator.get(backward_node)
        forward_line = lines.get(forward) if forward is not None else None
        line = forward_line or stack_line
        if line:
            lines[operator_id] = line
    return lines


def source_line_columns(places: Mapping[int, SourceLine]) -> dict[str, list[Any]]:
    """Returns source lines as JSON columns, with files and functions as indices into name lists."""
    files: dict[str, int] = {}
    functions: dict[str, int] = {}
    rows = sorted(places.items())
    return {
        "id": [operator_id for operator_id, _ in rows],
        "file": [files.setdefault(place.file, len(files)) for _, place in rows],
        "line": [place.line for _, place in rows],
        "function": [functions.setdefault(place.function, len(functions)) for _, place in rows],
        "how": [place.how for _, place in rows],
        "files": list(files),
        "functions": list(functions),
    }
