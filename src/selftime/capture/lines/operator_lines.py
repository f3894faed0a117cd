"""Finds the source line of every operator, from the profiler's event tree.

The tree exists in memory only and contains what the trace file lacks: the line that the calling
frame was executing. An operator's line is that of the innermost user frame around it. If the frame
made a call that was recorded, the executing line is known ("stack"). If the frame called the
operator directly, as for `x + y`, only the first line of its function is known ("definition"),
unless a step under line marks contains the line ("stamp", see `marked_lines`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from torch._C._profiler import _ProfilerEvent

from selftime.capture.lines.event_tree import (
    LINE_FROM_DEFINITION,
    LINE_FROM_MARKED_STEP,
    LINE_FROM_STACK,
    SEVERAL_LINES,
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
    "RecordedLines",
    "RunningFrame",
    "SourceLine",
    "extra_fields",
    "read_recorded_lines",
]

_MAX_CALLS: Final = 20_000
"""Largest number of calls whose lines are written."""


class RecordedLines(NamedTuple):
    """The source lines that a recording contains."""

    of_operators: dict[int, SourceLine]
    """The line of each operator and annotation, if known, by External id."""
    of_calls: dict[tuple[str, str], int]
    """The line at which a user's frame called a function of a library or of C, by the names of both
    in the trace; only of those that the frame called at one line."""

    def facts(self) -> dict[str, Any]:
        """Returns the lines as JSON columns."""
        return {
            "lines": _source_line_columns(self.of_operators),
            "calls": _call_line_columns(self.of_calls),
        }


def read_recorded_lines(
    roots: Iterable[_ProfilerEvent],
    *,
    sources: SourceFiles,
    running_frames: Iterable[RunningFrame] = (),
    forward_operator: Mapping[int, int],
    marked_lines: MarkedLines | None = None,
) -> RecordedLines:
    """Returns the source lines of operators, annotations, and calls by the user's frames.

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
    calls = {call: line for call, line in walk.call_lines.items() if line != SEVERAL_LINES}
    return RecordedLines(_lines_with_those_of_backward(walk, forward_operator), calls)


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


def _source_line_columns(places: Mapping[int, SourceLine]) -> dict[str, list[Any]]:
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


def _call_line_columns(lines: Mapping[tuple[str, str], int]) -> dict[str, list[Any]]:
    """Returns the lines of calls as JSON columns, with names as indices into a list."""
    numbers: dict[str, int] = {}
    rows = sorted(lines.items())[:_MAX_CALLS]
    return {
        "caller": [numbers.setdefault(caller, len(numbers)) for (caller, _), _ in rows],
        "called": [numbers.setdefault(called, len(numbers)) for (_, called), _ in rows],
        "line": [line for _, line in rows],
        "names": list(numbers),
    }
