"""Walks the profiler's event tree once to find the user's frame and line of each operator."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from torch._C._profiler import (
    RecordScope,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _ProfilerEvent,
    _PyFrameState,
)

from selftime import names
from selftime.capture.lines.marked_lines import FrameActivation, FrameCall, FrameOperator, LineMark
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.thread_frames import frames_of_threads

LINE_FROM_STACK: Final = 0
"""Value of `SourceLine.how`: the line was executing when its frame made the call."""
LINE_FROM_DEFINITION: Final = 1
"""Value of `SourceLine.how`: the exact line is unknown, so it is the first line of the function."""
LINE_FROM_MARKED_STEP: Final = 2
"""Value of `SourceLine.how`: the line was found in the extra step recorded with a mark at each
line."""

SEVERAL_LINES: Final = 0
"""Value of `EventTreeWalk.call_lines` for what more than one line of a function called."""

LINE_MARK_PREFIX: Final = "selftime: line "
"""Name prefix of the profiler event that marks the start of a line; the line number follows."""

_RUNNING_FUNCTION_PREFIX: Final = "<function "
"""Name prefix of calls of C that are none: with Python 3.12, PyTorch 2.8 records one around all
that a function calls which ran already, up to the end of the recording."""

BACKWARD_NODE_PREFIX: Final = "autograd::engine::evaluate_function: "
"""Name prefix of the profiler event that encloses the operators of an autograd backward node."""

ACCUMULATE_GRAD_EVENT_NAME: Final = BACKWARD_NODE_PREFIX + "torch::autograd::AccumulateGrad"


_RecordedFunctionKey: TypeAlias = tuple[str, int, str]
"""Identifies a function as the profiler recorded it: (file name, line number, function name)."""


class SourceLine(NamedTuple):
    """A source line of the user's code, and how it was determined."""

    file: str
    line: int
    function: str
    how: int
    """How the line was found: `LINE_FROM_STACK`, `LINE_FROM_DEFINITION` or
    `LINE_FROM_MARKED_STEP`."""


class RunningFrame(NamedTuple):
    """A Python frame that was running when the recording began.

    It is recorded with the `line` at which it was, not with the `first_line` of its function.
    """

    file: str
    line: int
    function: str
    first_line: int


class _EnclosingEvents(NamedTuple):
    """The Python frames, operators and backward nodes that enclose a profiler event."""

    line: SourceLine | None = None
    activation: FrameActivation | None = None
    """The user's frame around the event; None if the frame has called a function that the event
    is in."""
    outermost_operator: int | None = None
    """External id of the outermost operator around the event: the user's frame called it
    directly."""
    backward_node: int | None = None
    in_compiled_code: bool = False
    """Whether the next Python frame runs code that `torch.compile` generated."""
    frame: str = ""
    """The recorded name of the frame of `activation`."""


@dataclass(slots=True)
class EventTreeWalk:
    """Walks through the profiler's tree of events and collects the source line of each operator."""

    sources: SourceFiles
    first_lines_of_running_functions: Mapping[_RecordedFunctionKey, int]
    """First line of the function of each frame that already ran when the recording began."""
    lines: dict[int, SourceLine] = field(default_factory=dict)
    """Maps the External id of each operator outside of the backward pass to its source line."""
    backward_operators: list[tuple[int, int, SourceLine | None]] = field(default_factory=list)
    """(External id, External id of the backward node around it, source line or None) of each
    operator in the backward pass."""
    activations: list[FrameActivation] = field(default_factory=list)
    outermost_operator: dict[int, int] = field(default_factory=dict)
    """Maps each nested operator's External id to that of the outermost operator around it."""
    call_lines: dict[tuple[str, str], int] = field(default_factory=dict)
    """Maps the recorded names of a user's frame and of what it called, a function of a library or
    of C, to the line that called it; `SEVERAL_LINES` if more than one did."""
    _last_backward_node: dict[int, int] = field(default_factory=dict)
    _definitions: dict[_RecordedFunctionKey, SourceLine | None] = field(default_factory=dict)

    def visit_event(self, event: _ProfilerEvent, enclosing: _EnclosingEvents) -> _EnclosingEvents:
        """Processes one profiler event; returns the frames and operators around its children."""
        fields = extra_fields(event)
        kind = type(fields)
        if kind is _ExtraFields_TorchOp:
            return self._process_operator_or_annotation(event, fields, enclosing)
        if kind is _ExtraFields_PyCall:
            return self._process_python_function(event, fields, enclosing)
        if kind is _ExtraFields_PyCCall and not event.name.startswith(_RUNNING_FUNCTION_PREFIX):
            return self._process_call_by_user_frame(event, fields, enclosing, event.name)
        return enclosing

    def _process_python_function(
        self, event: _ProfilerEvent, fields: _ExtraFields_PyCall, enclosing: _EnclosingEvents
    ) -> _EnclosingEvents:
        """Enters a user's function, or stores the user's line that called a library function."""
        site = fields.callsite
        key = (_file_of_frame(site), site.line_number, _function_of_frame(site))
        if key not in self._definitions:
            self._definitions[key] = self._first_line_of_function(key)
        definition = self._definitions[key]
        if definition is None:
            return self._process_call_by_user_frame(
                event, fields, enclosing._replace(in_compiled_code=False), key[2]
            )
        if enclosing.activation is not None:
            enclosing.activation.items.append(FrameCall(fields.caller.line_number, key[2]))
        if enclosing.in_compiled_code:  # generated code is always recorded on its first line
            return _EnclosingEvents(definition)
        activation = FrameActivation(definition[:3])
        if key in self.first_lines_of_running_functions:
            activation.start = FrameCall(site.line_number, "")
        self.activations.append(activation)
        return _EnclosingEvents(definition, activation, frame=event.name)

    def _process_call_by_user_frame(
        self,
        event: _ProfilerEvent,
        fields: _ExtraFields_PyCall | _ExtraFields_PyCCall,
        enclosing: _EnclosingEvents,
        name: str,
    ) -> _EnclosingEvents:
        """Stores the line that a user's frame executed when it made the recorded call."""
        if enclosing.activation is None:
            return enclosing
        caller = fields.caller
        file = self.sources.user_file(_file_of_frame(caller))
        if file is None:
            return enclosing._replace(activation=None, outermost_operator=None)
        enclosing.activation.items.append(
            FrameCall(caller.line_number, names.without_object_address(name))
        )
        call = enclosing.frame, names.without_object_address(event.name)
        if self.call_lines.setdefault(call, caller.line_number) != caller.line_number:
            self.call_lines[call] = SEVERAL_LINES
        return _EnclosingEvents(
            SourceLine(file, caller.line_number, _function_of_frame(caller), LINE_FROM_STACK)
        )

    def _process_operator_or_annotation(
        self, event: _ProfilerEvent, fields: _ExtraFields_TorchOp, enclosing: _EnclosingEvents
    ) -> _EnclosingEvents:
        """Stores the line of an operator; lists backward operators, to find their lines later."""
        operator_id, name = event.correlation_id, fields.name
        if name.startswith(BACKWARD_NODE_PREFIX):
            enclosing = _EnclosingEvents(
                enclosing.line, backward_node=self._backward_node_id_of_event(event, fields)
            )
        if enclosing.backward_node is not None:
            self.backward_operators.append((operator_id, enclosing.backward_node, enclosing.line))
        elif enclosing.line is not None:
            self.lines[operator_id] = enclosing.line
        if names.compiled_region(name):
            return enclosing._replace(in_compiled_code=True)
        if enclosing.activation is None:
            return enclosing
        if enclosing.outermost_operator is not None:
            self.outermost_operator[operator_id] = enclosing.outermost_operator
        elif name.startswith(LINE_MARK_PREFIX):
            enclosing.activation.items.append(LineMark(int(name.removeprefix(LINE_MARK_PREFIX))))
        elif "::" in name and fields.scope is not RecordScope.USER_SCOPE:
            enclosing.activation.items.append(FrameOperator(name, operator_id))
            return enclosing._replace(outermost_operator=operator_id)
        return enclosing

    def _backward_node_id_of_event(
        self, event: _ProfilerEvent, fields: _ExtraFields_TorchOp
    ) -> int:
        thread = event.start_tid
        # `AccumulateGrad` runs right after the node that computed the gradient, and has no
        # sequence number of its own.
        if fields.name != ACCUMULATE_GRAD_EVENT_NAME:
            self._last_backward_node[thread] = event.correlation_id
        return self._last_backward_node.get(thread, event.correlation_id)

    def _first_line_of_function(self, key: _RecordedFunctionKey) -> SourceLine | None:
        """Returns the first line of a function if it is the user's; None for other functions."""
        recorded_name, line, function = key
        file = self.sources.user_file(recorded_name)
        if file is None:
            return None
        resumed = names.graph_break_location(function)
        if resumed is not None:
            return SourceLine(file, resumed[1], resumed[0], LINE_FROM_DEFINITION)
        return SourceLine(
            file,
            max(self.first_lines_of_running_functions.get(key, line), 1),
            function,
            LINE_FROM_DEFINITION,
        )


def walk_event_tree(
    roots: Iterable[_ProfilerEvent], *, sources: SourceFiles, running_frames: Iterable[RunningFrame]
) -> EventTreeWalk:
    """Visits each profiler event once, parents before children, and returns operators' lines.

    `running_frames` are the frames that ran when recording began.
    """
    first_lines = {
        (sources.recorded_name(f.file), f.line, f.function): f.first_line for f in running_frames
    }
    found = EventTreeWalk(sources, first_lines)
    stack = [(root, _EnclosingEvents()) for root in roots]
    stack.reverse()
    while stack:
        event, enclosing = stack.pop()
        enclosing = found.visit_event(event, enclosing)
        stack.extend((child, enclosing) for child in reversed(event.children))
    return found


def extra_fields(event: _ProfilerEvent) -> Any:
    """Returns `event.extra_fields`; None if torch does not export the event's type to Python.

    Events of the garbage collector (`record_python_gc_info`) are such.
    """
    try:
        return event.extra_fields
    except TypeError:
        return None


def _file_of_frame(frame: _PyFrameState) -> str:
    try:
        return frame.file_name
    except UnicodeDecodeError:  # the profiler may refer to text that was freed
        return "<unknown>"


def _function_of_frame(frame: _PyFrameState) -> str:
    try:
        return frame.function_name
    except UnicodeDecodeError:  # likewise
        return ""


def running_python_frames() -> list[RunningFrame]:
    """Returns the Python frames now on the stacks of all threads."""
    found = []
    for innermost in frames_of_threads().values():
        frame = innermost
        while frame is not None:
            code = frame.f_code
            line = frame.f_lineno or code.co_firstlineno
            found.append(RunningFrame(code.co_filename, line, code.co_name, code.co_firstlineno))
            frame = frame.f_back  # type: ignore[assignment]  # ends with None
    del innermost  # this function's own frame is among them: break the reference cycle
    return found
