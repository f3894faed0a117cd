"""One walk over the recorder's event tree: whose frame is around each operator, and its line."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from torch._C._profiler import (
    RecordScope,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _ProfilerEvent,
    _PyFrameState,
)

from selftime import names
from selftime.capture.lines.line_marks import Activation, Call, FrameKey, LineMark, Operator
from selftime.capture.lines.sources import SourceFiles

STACK: Final = 0
DEFINITION: Final = 1
STAMP: Final = 2

LINE_MARK: Final = "selftime: line "
"""What the name of a line mark begins with; the line follows."""

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
    frame: Activation | None = None
    """The user's frame, if nothing that it called is in between."""
    operator: int | None = None
    """The operator that came out of that frame."""
    node: int | None = None
    compiled: bool = False
    """Whether the next frame is code that `torch.compile` made."""


@dataclass(slots=True)
class Walk:
    """What one walk has found."""

    sources: SourceFiles
    opened: Mapping[tuple[str, int, str], int]
    places: dict[int, Place] = field(default_factory=dict)
    """By External id; those of the backward pass wait for the lines of the forward pass."""
    waiting: list[tuple[int, int, Place | None]] = field(default_factory=list)
    """External id, that of the backward node around, and the line that is known without it."""
    activations: list[Activation] = field(default_factory=list)
    inside: dict[int, int] = field(default_factory=dict)
    """The outermost operator around each of those that a user's frame ran without a call."""
    _last_node: dict[int, int] = field(default_factory=dict)
    _definitions: dict[FrameKey, Place | None] = field(default_factory=dict)

    def visit(self, event: _ProfilerEvent, around: _Around) -> _Around:
        """Note one event; what is around its children."""
        fields = fields_of(event)
        kind = type(fields)
        if kind is _ExtraFields_TorchOp:
            return self._operator(event, fields, around)
        if kind is _ExtraFields_PyCall:
            return self._frame(fields, around)
        if kind is _ExtraFields_PyCCall:
            return self._call(fields, around, event.name)
        return around

    def _frame(self, fields: _ExtraFields_PyCall, around: _Around) -> _Around:
        """A Python function: a user's frame, or one that a user's frame may have called."""
        site = fields.callsite
        key = (_file(site), site.line_number, _function(site))
        if key not in self._definitions:
            self._definitions[key] = self._definition(key)
        definition = self._definitions[key]
        if definition is None:
            return self._call(fields, around._replace(compiled=False), key[2])
        if around.frame is not None:
            around.frame.items.append(Call(fields.caller.line_number, key[2]))
        if around.compiled:  # made code stands on its first line, whatever it runs
            return _Around(definition)
        begun = Activation(definition[:3])
        if key in self.opened:
            begun.begin = Call(site.line_number, "")
        self.activations.append(begun)
        return _Around(definition, begun)

    def _call(
        self, fields: _ExtraFields_PyCall | _ExtraFields_PyCCall, around: _Around, name: str
    ) -> _Around:
        """A call out of the frame around it: the caller's line is the executing line."""
        if around.frame is None:
            return around
        caller = fields.caller
        file = self.sources.user_file(_file(caller))
        if file is None:
            return around._replace(frame=None, operator=None)
        around.frame.items.append(Call(caller.line_number, names.without_address(name)))
        return _Around(Place(file, caller.line_number, _function(caller), STACK))

    def _operator(
        self, event: _ProfilerEvent, fields: _ExtraFields_TorchOp, around: _Around
    ) -> _Around:
        """An operator or annotation; a backward node hands its forward operator's line down."""
        number, name = event.correlation_id, fields.name
        if name.startswith(NODE):
            around = _Around(around.place, node=self._node(event, fields))
        if around.node is not None:
            self.waiting.append((number, around.node, around.place))
        elif around.place is not None:
            self.places[number] = around.place
        if names.compiled_region(name):
            return around._replace(compiled=True)
        if around.frame is None:
            return around
        if around.operator is not None:
            self.inside[number] = around.operator
        elif name.startswith(LINE_MARK):
            around.frame.items.append(LineMark(int(name.removeprefix(LINE_MARK))))
        elif "::" in name and fields.scope is not RecordScope.USER_SCOPE:
            around.frame.items.append(Operator(name, number))
            return around._replace(operator=number)
        return around

    def _node(self, event: _ProfilerEvent, fields: _ExtraFields_TorchOp) -> int:
        thread = event.start_tid
        # Gradients are accumulated right after the node that made them, and have no number.
        if fields.name != ACCUMULATE:
            self._last_node[thread] = event.correlation_id
        return self._last_node.get(thread, event.correlation_id)

    def _definition(self, key: FrameKey) -> Place | None:
        recorded, line, function = key
        file = self.sources.user_file(recorded)
        if file is None:
            return None
        resumed = names.graph_break_location(function)
        if resumed is not None:
            return Place(file, resumed[1], resumed[0], DEFINITION)
        return Place(file, max(self.opened.get(key, line), 1), function, DEFINITION)


def walk(
    roots: Iterable[_ProfilerEvent], *, sources: SourceFiles, opened: Iterable[OpenFrame]
) -> Walk:
    """Every event once, from the outside in and in the order of time."""
    starts = {(sources.recorded(f.file), f.line, f.function): f.first_line for f in opened}
    found = Walk(sources, starts)
    stack = [(root, _Around()) for root in roots]
    stack.reverse()
    while stack:
        event, around = stack.pop()
        around = found.visit(event, around)
        stack.extend((child, around) for child in reversed(event.children))
    return found


def fields_of(event: _ProfilerEvent) -> Any:
    """What the event tree tells of an event; None for those that torch does not export.

    Events of the garbage collector (`record_python_gc_info`) have no type in Python.
    """
    try:
        return event.extra_fields
    except TypeError:
        return None


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


def open_frames() -> list[OpenFrame]:
    """Frames that run now, of every thread: they will be recorded with their present line."""
    found = []
    for innermost in sys._current_frames().values():  # noqa: SLF001 - the only way to other threads
        frame = innermost
        while frame is not None:
            code = frame.f_code
            line = frame.f_lineno or code.co_firstlineno
            found.append(OpenFrame(code.co_filename, line, code.co_name, code.co_firstlineno))
            frame = frame.f_back  # type: ignore[assignment]  # ends with None
    del innermost  # ours is among them, and would hold itself
    return found
