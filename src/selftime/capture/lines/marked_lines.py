"""Learns which source line calls which operator, from a step recorded with a mark per line.

A recording contains the line of each call in a frame, but not that of an operator such as `x + y`:
of it only the frame, the name, and the position among the calls and operators are known. A step
that ran under line marks (see `line_marker`) contains the line of every operator. A recorded
operator gets a line from it if

1. the operators between the same two calls were the same in the marked step, and each was always
   on one line there; or else all operators of its name were on one line there; and
2. no line that did not run in the marked step can have called it: no skipped instruction between
   those two calls may call such an operator (see `bytecode`).

Otherwise its line stays unknown: a branch that the marked step did not take is never guessed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Final, NamedTuple, TypeAlias

from selftime import names
from selftime.capture.lines.bytecode import (
    ANY_OPERATOR_SYNTAX,
    FUNCTION_START_LINE,
    SUBSCRIPT_SYNTAX,
    TRUTH_VALUE_SYNTAX,
    SkippedInstruction,
    skipped_instructions,
)

FunctionKey: TypeAlias = tuple[str, int, str]
"""Identifies a function by (file, first line, name)."""

_UNKNOWN_LINE_NUMBER: Final = 0
"""Used instead of a line number if no line or more than one line is possible."""


class FrameCall(NamedTuple):
    """A Python call that a user's frame made: the line that made it, and the called function."""

    line: int
    name: str


class FrameOperator(NamedTuple):
    """An operator that a user's frame called directly: its name and its id in the recording."""

    name: str
    operator_id: int


class LineMark(NamedTuple):
    """A mark in the recording that says that a user's frame began to execute this line."""

    line: int


_MISSING_CALL_BEFORE_SEGMENT: Final = FrameCall(FUNCTION_START_LINE, "")
_MISSING_CALL_AFTER_SEGMENT: Final = FrameCall(-1, "")


@dataclass(slots=True)
class FrameActivation:
    """One execution of a user's function, or of a generator from one `yield` to the next."""

    function: FunctionKey
    start: FrameCall = _MISSING_CALL_BEFORE_SEGMENT
    """The line at which the execution begins in the recording: the function's start, unless it
    already ran."""
    items: list[FrameCall | FrameOperator | LineMark] = field(default_factory=list)
    """The calls, operators and line marks of the frame, in order of time."""


class _OperatorSegment(NamedTuple):
    """The operators that a user's frame ran between two consecutive calls of Python functions."""

    call_before: FrameCall
    operators: tuple[FrameOperator, ...]
    lines: tuple[int, ...]
    """The source line of each operator, in the order of `operators`."""
    call_after: FrameCall

    @property
    def signature(self) -> tuple[FrameCall, tuple[str, ...], FrameCall]:
        operator_names = tuple(operator.name for operator in self.operators)
        return self.call_before, operator_names, self.call_after


def _operator_segments(activation: FrameActivation) -> Iterator[_OperatorSegment]:
    """Splits a function's execution at its Python calls; yields the intervals with operators."""
    before, line = activation.start, activation.start.line
    operators: list[FrameOperator] = []
    lines: list[int] = []
    for item in [*activation.items, _MISSING_CALL_AFTER_SEGMENT]:
        if isinstance(item, LineMark):
            line = item.line
        elif isinstance(item, FrameOperator):
            operators.append(item)
            lines.append(line)
        else:
            if operators:
                yield _OperatorSegment(before, tuple(operators), tuple(lines), item)
            before, operators, lines = item, [], []


@dataclass(slots=True)
class _MarkedFunctionLines:
    """Source lines of one function's operators, from a step recorded with a mark per line."""

    segments: dict[tuple[FrameCall, tuple[str, ...], FrameCall], tuple[int, ...]] = field(
        default_factory=dict
    )
    """Maps (call before, operator names, call after) to the operators' lines;
    `_UNKNOWN_LINE_NUMBER` for a line that varied."""
    line_of_name: dict[str, int] = field(default_factory=dict)
    """Maps an operator name to the only line that called it; `_UNKNOWN_LINE_NUMBER` if several
    did."""
    executed_lines: set[int] = field(default_factory=set)
    call_lines: set[int] = field(default_factory=set)
    skipped: set[SkippedInstruction] = field(default_factory=set)

    def add_activation(self, activation: FrameActivation) -> None:
        items = activation.items
        self.executed_lines.add(activation.start.line)
        self.executed_lines.update(item.line for item in items if isinstance(item, LineMark))
        self.call_lines.update(item.line for item in items if isinstance(item, FrameCall))
        for segment in _operator_segments(activation):
            known = self.segments.get(segment.signature, segment.lines)
            pairs = zip(known, segment.lines, strict=True)
            self.segments[segment.signature] = tuple(
                _line_if_equal_else_unknown(*pair) for pair in pairs
            )
            for operator, line in zip(segment.operators, segment.lines, strict=True):
                known_line = self.line_of_name.get(operator.name, line)
                self.line_of_name[operator.name] = _line_if_equal_else_unknown(known_line, line)

    def certain_operator_lines(self, segment: _OperatorSegment) -> Iterator[tuple[int, int]]:
        """Yields (External id, line) for each operator of a segment whose line is certain."""
        by_name = tuple(
            self.line_of_name.get(each.name, _UNKNOWN_LINE_NUMBER) for each in segment.operators
        )
        by_segment = self.segments.get(segment.signature, by_name)
        for operator, line, other in zip(segment.operators, by_segment, by_name, strict=True):
            found = line or other
            if found and not self._may_be_on_skipped_line(operator.name, segment):
                yield operator.operator_id, found

    def _may_be_on_skipped_line(self, operator: str, segment: _OperatorSegment) -> bool:
        syntax = _python_syntax_of_operator(operator)
        before, after = segment.call_before, segment.call_after
        return any(
            before.line in instruction.lines_before
            and (after is _MISSING_CALL_AFTER_SEGMENT or after.line in instruction.lines_after)
            and _may_instruction_call_operator(instruction.syntax, syntax)
            for instruction in self.skipped
        )


def _line_if_equal_else_unknown(one: int, other: int) -> int:
    return one if one == other else _UNKNOWN_LINE_NUMBER


def _python_syntax_of_operator(operator: str) -> str:
    """Returns the Python syntax, such as `+`, that calls a torch operator."""
    syntax = names.python_syntax_of_operator(operator)[0] or ANY_OPERATOR_SYNTAX
    return SUBSCRIPT_SYNTAX if syntax.startswith("x[") else syntax


def _may_instruction_call_operator(instruction: str, operator: str) -> bool:
    """Returns whether bytecode for some Python syntax, such as `+`, may have called an operator."""
    # Besides its own instructions only the truth value has a callable in Python code: `bool`.
    return operator in {ANY_OPERATOR_SYNTAX, instruction} or (
        operator == TRUTH_VALUE_SYNTAX and instruction == ANY_OPERATOR_SYNTAX
    )


@dataclass(slots=True)
class MarkedLines:
    """Source lines of each function's operators, from a step recorded with a mark per line."""

    functions: dict[FunctionKey, _MarkedFunctionLines] = field(default_factory=dict)
    code_lines: dict[tuple[str, str], list[tuple[int, frozenset[int]]]] = field(
        default_factory=dict
    )
    """Maps (file, function name) to a list of (first line, all lines), one for each function of
    that name."""

    def certain_operator_lines(self, activation: FrameActivation) -> Iterator[tuple[int, int]]:
        """Yields (External id, line) for each operator of an execution whose line is certain."""
        started = self.with_first_line(activation)
        function = self.functions.get(started.function)
        if function is not None:
            for segment in _operator_segments(started):
                yield from function.certain_operator_lines(segment)

    def with_first_line(self, activation: FrameActivation) -> FrameActivation:
        """Returns a frame activation keyed by its function's first line.

        Returns it unchanged if it has that key already, or if the first line is ambiguous. A
        generator that resumes is recorded with the line of its last `yield` instead.
        """
        file, line, name = activation.function
        functions = self.code_lines.get((file, name), [])
        first_lines = {first for first, lines in functions if line == first or line in lines}
        if line in first_lines or len(first_lines) != 1:
            return activation
        return FrameActivation(
            (file, first_lines.pop(), name), FrameCall(line, ""), activation.items
        )

    def add_activation(self, activation: FrameActivation) -> None:
        started = self.with_first_line(activation)
        self.functions.setdefault(started.function, _MarkedFunctionLines()).add_activation(started)


def learn_marked_lines(
    activations: Iterable[FrameActivation], codes: Mapping[FunctionKey, Iterable[CodeType]]
) -> MarkedLines:
    """Returns operators' source lines by function, from a step recorded with a mark per line."""
    marked = MarkedLines()
    for (file, first_line, name), several in codes.items():
        for code in several:
            lines = frozenset(line for _, _, line in code.co_lines() if line is not None)
            marked.code_lines.setdefault((file, name), []).append((first_line, lines))
    for activation in activations:
        marked.add_activation(activation)
    marked.functions = {key: each for key, each in marked.functions.items() if key in codes}
    for key, function in marked.functions.items():
        for code in codes[key]:
            function.skipped |= skipped_instructions(
                code, function.executed_lines, function.call_lines
            )
    return marked
