"""Which other lines a function could have run between two that it is known to have run.

Read from the bytecode. A line that never ran while lines were marked may have run in a recorded
step, and made the same operators as its neighbour: then nobody can tell the two apart.
"""

import dis
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Final, NamedTuple

BEGIN: Final = 0
"""Stands for the line before the first: a frame begins, or a generator goes on."""

ANY: Final = ""
"""An instruction that may run any operator: a call of a type, an attribute."""

SUBSCRIPT: Final = "[]"
TRUTH: Final = "truth"

_ENDS: Final = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_JUMPS: Final = frozenset(
    {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE"}
)
_SUBSCRIPTS: Final = ("_SUBSCR", "_SLICE")
_UNARY: Final[Mapping[str, str]] = {
    "UNARY_NEGATIVE": "-x",
    "UNARY_INVERT": "~x",
    "UNARY_NOT": TRUTH,
    "TO_BOOL": TRUTH,
}
_UNNAMED: Final = ("CALL", "LOAD_ATTR", "STORE_ATTR", "CONTAINS_OP")
_BINARY_310: Final[Mapping[str, str]] = {
    "ADD": "+",
    "SUBTRACT": "-",
    "MULTIPLY": "*",
    "TRUE_DIVIDE": "/",
    "FLOOR_DIVIDE": "//",
    "MODULO": "%",
    "POWER": "**",
    "MATRIX_MULTIPLY": "@",
    "AND": "&",
    "OR": "|",
    "XOR": "^",
}
"""Python 3.10 has an instruction for each sign; later ones have one for all."""


class Detour(NamedTuple):
    """An instruction on a line that did not run, and where it lies."""

    syntax: str
    """What it is in the source: a sign, `SUBSCRIPT`, `TRUTH`, or `ANY`."""
    after: frozenset[int]
    """Lines from which it can be reached without a recorded call; `BEGIN` is among them."""
    before: frozenset[int]
    """Lines that can be reached from it, likewise."""


def detours(code: CodeType, ran: Iterable[int], calls: Iterable[int]) -> set[Detour]:
    """The instructions that can run an operator and lie on none of the lines that `ran`.

    `calls` are the lines whose calls are recorded: nothing passes them unseen.
    """
    graph = _graph(code, frozenset(calls))
    known = frozenset(ran)
    found = set()
    for at, node in enumerate(graph.nodes):
        if node.syntax is not None and node.line not in known:
            after, before = graph.reach(at, graph.sources), graph.reach(at, graph.targets)
            found.add(Detour(node.syntax, after, before))
    return found


class _Node(NamedTuple):
    line: int
    syntax: str | None
    closed: bool
    """Whether a recorded call is made here."""


@dataclass(slots=True)
class _Graph:
    nodes: list[_Node]
    targets: list[list[int]]
    sources: list[list[int]]

    def reach(self, start: int, following: list[list[int]]) -> frozenset[int]:
        """The lines on the ways from here, each to its first recorded call."""
        seen = {start}
        waiting = [start]
        while waiting:
            for other in following[waiting.pop()]:
                if other not in seen:
                    seen.add(other)
                    if not self.nodes[other].closed:
                        waiting.append(other)
        return frozenset(self.nodes[at].line for at in seen)


def _graph(code: CodeType, calls: frozenset[int]) -> _Graph:
    """The instructions and what may run after each; the first node stands for the beginning."""
    instructions = list(dis.get_instructions(code))
    place = {found.offset: at for at, found in enumerate(instructions, 1)}
    lines = _lines(code, instructions)
    nodes = [_Node(BEGIN, None, closed=False)]
    targets: list[list[int]] = [[1]]
    for at, (found, line) in enumerate(zip(instructions, lines, strict=True), 1):
        calling = found.opname.startswith("CALL")
        nodes.append(_Node(line, _syntax(found), closed=calling and line in calls))
        following = []
        if found.opname not in _ENDS | _JUMPS and at < len(instructions):
            following.append(at + 1)
        if found.opcode in dis.hasjrel or found.opcode in dis.hasjabs:
            following += [place[found.argval]] if found.argval in place else []
        targets.append(following)
        if found.opname in {"YIELD_VALUE", "SEND"} and at < len(instructions):
            targets[0].append(at + 1)
    sources: list[list[int]] = [[] for _ in nodes]
    for at, following in enumerate(targets):
        for other in following:
            sources[other].append(at)
    return _Graph(nodes, targets, sources)


def _lines(code: CodeType, instructions: list[dis.Instruction]) -> list[int]:
    """The line of each instruction; one that has none belongs to the line before."""
    told = {}
    for begin, end, line in code.co_lines():
        if line is not None:
            told.update(dict.fromkeys(range(begin, end, 2), line))
    found, line = [], code.co_firstlineno
    for instruction in instructions:
        line = told.get(instruction.offset, line)
        found.append(line)
    return found


def _syntax(found: dis.Instruction) -> str | None:
    """What in the source the instruction stands for; None if it can run no operator."""
    name = found.opname
    if name == "BINARY_OP":
        sign = found.argrepr.removesuffix("=")
        return SUBSCRIPT if sign.startswith("[") else sign
    if name == "COMPARE_OP":
        return str(found.argval).removeprefix("bool(").removesuffix(")")
    if name.endswith(_SUBSCRIPTS):
        return SUBSCRIPT
    if name.startswith(("BINARY_", "INPLACE_")):
        return _BINARY_310.get(name.partition("_")[2], ANY)
    if "JUMP_IF" in name and "NONE" not in name:
        return TRUTH
    return _UNARY.get(name, ANY if name.startswith(_UNNAMED) else None)
