"""The lines of operators that come straight out of a user's frame, as one marked step tells them.

Of such an operator a recording knows the frame, its name, and its place among the calls and
operators of the frame; the line of each call is known. A step that ran under line marks (see
`stamps`) tells the same with the line of every operator. A recorded operator has a line if

1. the operators between the same two calls were the same in the marked step, and on one line each
   whenever they were met there; or else all operators of its name were on one line there; and
2. no line that did not run in the marked step can have made it: none between those two calls has
   an instruction that does (see `branches`).

Otherwise it stays unknown: a branch that the marked step did not take is never guessed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Final, NamedTuple, TypeAlias

from selftime import names
from selftime.capture.lines.branches import ANY, BEGIN, SUBSCRIPT, TRUTH, Detour, detours

FrameKey: TypeAlias = tuple[str, int, str]
"""A function: its file, its first line, its name."""

_UNKNOWN: Final = 0
"""In place of a line: there is none, or several."""


class Call(NamedTuple):
    """A call that a frame made: the line that was executing, and what it called."""

    line: int
    name: str


class Operator(NamedTuple):
    """An operator that came out of a frame with no call around it: its name and External id."""

    name: str
    number: int


class LineMark(NamedTuple):
    """The frame began to execute this line."""

    line: int


_BEGIN: Final = Call(BEGIN, "")
_END: Final = Call(-1, "")
"""What follows the last operator of a frame that makes no further call."""


@dataclass(slots=True)
class Activation:
    """One run of a user's function, or of a generator from one `yield` to the next."""

    key: FrameKey
    begin: Call = _BEGIN
    """Of a frame that ran when recording began, the line at which it was."""
    items: list[Call | Operator | LineMark] = field(default_factory=list)


class _Stretch(NamedTuple):
    """What a frame did between two calls."""

    after: Call
    operators: tuple[Operator, ...]
    lines: tuple[int, ...]
    before: Call

    @property
    def signature(self) -> tuple[Call, tuple[str, ...], Call]:
        return self.after, tuple(operator.name for operator in self.operators), self.before


def _stretches(activation: Activation) -> Iterator[_Stretch]:
    """The stretches in which operators ran; their lines are unknown where nothing is marked."""
    after, line = activation.begin, activation.begin.line
    operators: list[Operator] = []
    lines: list[int] = []
    for item in [*activation.items, _END]:
        if isinstance(item, LineMark):
            line = item.line
        elif isinstance(item, Operator):
            operators.append(item)
            lines.append(line)
        else:
            if operators:
                yield _Stretch(after, tuple(operators), tuple(lines), item)
            after, operators, lines = item, [], []


@dataclass(slots=True)
class _Function:
    """What the marked step tells of one function."""

    stretches: dict[tuple[Call, tuple[str, ...], Call], tuple[int, ...]] = field(
        default_factory=dict
    )
    lines: dict[str, int] = field(default_factory=dict)
    """The one line of all operators of a name."""
    ran: set[int] = field(default_factory=set)
    calls: set[int] = field(default_factory=set)
    detours: set[Detour] = field(default_factory=set)

    def learn(self, activation: Activation) -> None:
        self.ran.add(activation.begin.line)
        self.calls.update(item.line for item in activation.items if isinstance(item, Call))
        self.ran.update(item.line for item in activation.items if isinstance(item, LineMark))
        for stretch in _stretches(activation):
            known = self.stretches.get(stretch.signature, stretch.lines)
            same = tuple(_agreed(*pair) for pair in zip(known, stretch.lines, strict=True))
            self.stretches[stretch.signature] = same
            for operator, line in zip(stretch.operators, stretch.lines, strict=True):
                self.lines[operator.name] = _agreed(self.lines.get(operator.name, line), line)

    def lines_of(self, stretch: _Stretch) -> Iterator[tuple[int, int]]:
        by_name = tuple(self.lines.get(operator.name, _UNKNOWN) for operator in stretch.operators)
        lines = self.stretches.get(stretch.signature, by_name)
        for operator, line, other in zip(stretch.operators, lines, by_name, strict=True):
            found = line or other
            if found and not self._may_be_elsewhere(operator.name, stretch):
                yield operator.number, found

    def _may_be_elsewhere(self, operator: str, stretch: _Stretch) -> bool:
        syntax = _syntax_of(operator)
        return any(
            stretch.after.line in detour.after
            and (stretch.before is _END or stretch.before.line in detour.before)
            and _can_run(detour.syntax, syntax)
            for detour in self.detours
        )


def _agreed(one: int, other: int) -> int:
    return one if one == other else _UNKNOWN


def _syntax_of(operator: str) -> str:
    """The source that runs an operator; `ANY` where that is not known."""
    syntax = names.syntax_of(operator)[0] or ANY
    return SUBSCRIPT if syntax.startswith("x[") else syntax


def _can_run(found: str, asked: str) -> bool:
    """Whether an instruction can run an operator that belongs to this syntax."""
    # Of the operators with a sign of their own only the truth value has a type to call: `bool`.
    return asked in {ANY, found} or (asked == TRUTH and found == ANY)


@dataclass(slots=True)
class Marks:
    """What a marked step tells; it can be pickled."""

    functions: dict[FrameKey, _Function] = field(default_factory=dict)
    bodies: dict[tuple[str, str], list[tuple[int, frozenset[int]]]] = field(default_factory=dict)
    """Of each file and name the functions: the first line of each, and all its lines."""

    def lines_of(self, activation: Activation) -> Iterator[tuple[int, int]]:
        """External id and line of each operator of a recorded frame whose line is certain."""
        begun = self.from_its_start(activation)
        function = self.functions.get(begun.key)
        if function is not None:
            for stretch in _stretches(begun):
                yield from function.lines_of(stretch)

    def from_its_start(self, activation: Activation) -> Activation:
        """The frame under the first line of its function.

        A generator that goes on is recorded with the line on which it rested.
        """
        file, line, name = activation.key
        bodies = self.bodies.get((file, name), [])
        holding = {first for first, lines in bodies if line == first or line in lines}
        if line in holding or len(holding) != 1:
            return activation
        return Activation((file, holding.pop(), name), Call(line, ""), activation.items)

    def learn(self, activation: Activation) -> None:
        begun = self.from_its_start(activation)
        self.functions.setdefault(begun.key, _Function()).learn(begun)


def learn(activations: Iterable[Activation], codes: Mapping[FrameKey, Iterable[CodeType]]) -> Marks:
    """What the frames of the marked step tell; `codes` are the functions that ran in it."""
    marks = Marks()
    for (file, first_line, name), several in codes.items():
        for code in several:
            lines = frozenset(line for _, _, line in code.co_lines() if line is not None)
            marks.bodies.setdefault((file, name), []).append((first_line, lines))
    for activation in activations:
        marks.learn(activation)
    marks.functions = {key: told for key, told in marks.functions.items() if key in codes}
    for key, function in marks.functions.items():
        for code in codes[key]:
            function.detours |= detours(code, function.ran, function.calls)
    return marks
