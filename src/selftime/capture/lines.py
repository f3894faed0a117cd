"""The source line of every operator, read from the recorder's event tree.

The tree is in memory only, and it knows what the trace does not: the line that the calling frame
was executing. An operator's line is that of the innermost user frame around it. If the frame called
something that the recorder saw, the executing line is known ("stack"). If the operator came
straight out of the frame, as `x + y` does, only the frame's definition line is ("definition").
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from torch._C._profiler import (
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _ProfilerEvent,
    _PyFrameState,
)

from selftime.capture.sources import SourceFiles

__all__ = ["DEFINITION", "STACK", "OpenFrame", "Place", "columns", "fields_of", "read_lines"]

STACK: Final = 0
DEFINITION: Final = 1

NODE: Final = "autograd::engine::evaluate_function: "
"""What the name of a backward node's outer record begins with."""

ACCUMULATE: Final = NODE + "torch::autograd::AccumulateGrad"


class Place(NamedTuple):
    """A line of the user's code, and how it is known."""

    file: str
    line: int
    function: str
    how: int


class OpenFrame(NamedTuple):
    """A frame that ran when recording began: it is recorded with its line, not its start."""

    file: str
    line: int
    function: str
    first_line: int


class _Around(NamedTuple):
    """What is known of the frames and nodes around an event."""

    place: Place | None = None
    in_user_frame: bool = False
    node: int | None = None


@dataclass(slots=True)
class _Walk:
    """One walk over the tree; what it has found so far."""

    sources: SourceFiles
    opened: Mapping[tuple[str, int, str], int]
    forward: Mapping[int, int]
    places: dict[int, Place] = field(default_factory=dict)
    waiting: list[tuple[int, int, Place | None]] = field(default_factory=list)
    last_node: dict[int, int] = field(default_factory=dict)
    definitions: dict[tuple[str, int], Place | None] = field(default_factory=dict)

    def frame(self, fields: _ExtraFields_PyCall, around: _Around) -> _Around:
        """A Python function: a user's frame, or one that a user's frame may have called."""
        site = fields.callsite
        key = (_file(site), site.line_number)
        if key not in self.definitions:
            self.definitions[key] = self._definition(site)
        definition = self.definitions[key]
        if definition is not None:
            return _Around(definition, in_user_frame=True)
        return self.call(fields, around)

    def call(self, fields: _ExtraFields_PyCall | _ExtraFields_PyCCall, around: _Around) -> _Around:
        """A call out of the frame around it: the caller's line is the executing line."""
        if not around.in_user_frame:
            return around
        caller = fields.caller
        file = self.sources.user_file(_file(caller))
        if file is None:
            return around._replace(in_user_frame=False)
        place = Place(file, caller.line_number, _function(caller), STACK)
        return _Around(place, in_user_frame=False)

    def operator(
        self, event: _ProfilerEvent, fields: _ExtraFields_TorchOp, around: _Around
    ) -> _Around:
        """An operator or annotation; a backward node hands its forward operator's line down."""
        number = event.correlation_id
        if fields.name.startswith(NODE):
            around = _Around(around.place, in_user_frame=False, node=self._node(event, fields))
        if around.node is not None:
            self.waiting.append((number, around.node, around.place))
        elif around.place is not None:
            self.places[number] = around.place
        return around

    def settle(self) -> dict[int, Place]:
        """The lines, with those of the backward pass taken from the forward operators."""
        for number, node, place in self.waiting:
            forward = self.forward.get(node)
            known = self.places.get(forward) if forward is not None else None
            if known or place:
                self.places[number] = known or place  # type: ignore[assignment]  # one is set
        return self.places

    def _node(self, event: _ProfilerEvent, fields: _ExtraFields_TorchOp) -> int:
        thread = event.start_tid
        # Gradients are accumulated right after the node that made them, and have no number.
        if fields.name != ACCUMULATE:
            self.last_node[thread] = event.correlation_id
        return self.last_node.get(thread, event.correlation_id)

    def _definition(self, site: _PyFrameState) -> Place | None:
        file = self.sources.user_file(_file(site))
        if file is None:
            return None
        function = _function(site)
        line = self.opened.get((_file(site), site.line_number, function), site.line_number)
        return Place(file, max(line, 1), function, DEFINITION)


def _file(frame: _PyFrameState) -> str:
    try:
        return frame.file_name
    except UnicodeDecodeError:  # the recorder may hold text that was freed
        return "<unknown>"


def _function(frame: _PyFrameState) -> str:
    try:
        return frame.function_name
    except UnicodeDecodeError:  # likewise
        return ""


def fields_of(event: _ProfilerEvent) -> Any:
    """What the event tree tells of an event; None for those that torch does not export.

    Events of the garbage collector (`record_python_gc_info`) have no type in Python.
    """
    try:
        return event.extra_fields
    except TypeError:
        return None


def read_lines(
    roots: Iterable[_ProfilerEvent],
    *,
    sources: SourceFiles,
    opened: Iterable[OpenFrame] = (),
    forward: Mapping[int, int],
) -> dict[int, Place]:
    """The line of every operator and annotation that has one, by its External id.

    `forward` tells the forward operator of a backward node, by External id.
    """
    starts = {(sources.recorded(f.file), f.line, f.function): f.first_line for f in opened}
    walk = _Walk(sources, starts, forward)
    stack = [(root, _Around()) for root in roots]
    stack.reverse()
    while stack:
        event, around = stack.pop()
        fields = fields_of(event)
        kind = type(fields)
        if kind is _ExtraFields_TorchOp:
            around = walk.operator(event, fields, around)
        elif kind is _ExtraFields_PyCall:
            around = walk.frame(fields, around)
        elif kind is _ExtraFields_PyCCall:
            around = walk.call(fields, around)
        stack.extend((child, around) for child in reversed(event.children))
    return walk.settle()


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
