"""Puts a clock into a copy of a program, and reads what it wrote.

The program's syntax tree gets calls of `marks.py` around the statements that `expected.toml` names
and at the beginning of each iteration of its loops. Line numbers and the source file stay as they
are: the tree is compiled, and the compiled code runs in place of the source.
"""

import ast
import importlib.util
import json
import marshal
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, Final

from programs.expected import Program

__all__ = ["LIBRARY", "Clocked", "Interval", "compiled_copy", "read_clock"]

LIBRARY: Final = "site-packages"
"""The folder of the clock in a program's copy, so named that no line of it is the user's."""

_MARKS: Final = "program_marks"
_UNCHECKED: Final = (1).to_bytes(4, "little")
"""The flag of a compiled file that holds whatever became of its source."""
_DATA, _END, _OTHER = "data", "end", "other"


@dataclass(frozen=True, slots=True)
class Interval:
    """A time that belongs to one part, in ns of `time.perf_counter_ns`."""

    part: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Clocked:
    """What the clock of one process saw."""

    start: int
    """The program's first instruction."""
    end: int | None
    """Its last one; None in a process that a program started."""
    intervals: tuple[Interval, ...] = ()
    """Of its time, in order, without gaps: the parts that the declaration tells."""
    iterations: dict[str, list[int]] = field(default_factory=dict)
    """When each iteration of a loop began, by the source text of the loop's line."""

    def times(self) -> dict[str, int]:
        """The time of each part, in ns."""
        summed: dict[str, int] = {}
        for interval in self.intervals:
            summed[interval.part] = summed.get(interval.part, 0) + interval.end - interval.start
        return summed


def compiled_copy(program: Program, folder: Path) -> tuple[str, ...]:
    """Compile the program's copy in the folder with the clock; returns its command."""
    marks = (Path(__file__).parent / "marks.py").read_text(encoding="utf-8")
    (folder / LIBRARY).mkdir(exist_ok=True)
    (folder / LIBRARY / f"{_MARKS}.py").write_text(marks, encoding="utf-8")
    mains = {f"{word}.py" if not word.endswith(".py") else word for word in program.command}
    command = list(program.command)
    for file, source in program.sources().items():
        is_main = file in mains or file.endswith("__main__.py")
        tree = clocked_tree(program, source, is_main=is_main)
        code = compile(tree, str(folder / file), "exec", dont_inherit=True)
        path = folder / file
        if file in command:
            command[command.index(file)] = f"{file}c"
            Path(f"{path}c").write_bytes(_pyc(code, bytes(12)))
        else:  # what is imported keeps its name: the import system finds the compiled code
            cached = Path(importlib.util.cache_from_source(str(path)))
            cached.parent.mkdir(exist_ok=True)
            digest = importlib.util.source_hash(path.read_bytes())
            cached.write_bytes(_pyc(code, _UNCHECKED + digest))
    return tuple(command)


def _pyc(code: CodeType, head: bytes) -> bytes:
    """Returns a compiled file; see PEP 552 for its head."""
    return importlib.util.MAGIC_NUMBER + head + marshal.dumps(code)


def clocked_tree(program: Program, source: str, *, is_main: bool) -> ast.Module:
    """Returns the program's syntax tree with the clock."""
    tree = ast.parse(source)
    _Marker(program, source.splitlines()).visit(tree)
    at = _after_head(tree.body)
    head, body = tree.body[:at], tree.body[at:]
    if is_main and body:
        ending = ast.Try(body=body, handlers=[], orelse=[], finalbody=[_call("end")])
        body = [ast.copy_location(ending, body[0])]
    importing = ast.Import(names=[ast.alias(name=_MARKS)])
    if body:
        importing = ast.copy_location(importing, body[0])
    tree.body = [*head, importing, *body]
    return ast.fix_missing_locations(tree)


def _after_head(body: list[ast.stmt]) -> int:
    """The number of statements that must stay first: a docstring, imports of `__future__`."""
    at = 0
    for statement in body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (is_text or is_future):
            break
        at += 1
    return at


def _call(name: str, *args: str) -> ast.Expr:
    values: list[ast.expr] = [ast.Constant(value) for value in args]
    return ast.Expr(_marks(name, values))


def _marks(name: str, args: list[ast.expr]) -> ast.Call:
    function = ast.Attribute(ast.Name(_MARKS, ast.Load()), name, ast.Load())
    return ast.Call(function, args, [])


class _Marker(ast.NodeTransformer):
    def __init__(self, program: Program, lines: list[str]) -> None:
        self._lines = lines
        self._parts = {text: part for part, texts in program.phases.items() for text in texts}
        self._loops = {steps.loop: steps for steps in program.steps if steps.loop}
        for steps in program.steps:
            if steps.call:
                self._parts[steps.call] = "steps"

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                setattr(node, name, [self._marked(statement) for statement in body])
        return node

    def _marked(self, statement: ast.stmt) -> ast.stmt:
        text = self._lines[statement.lineno - 1].strip()
        loop = self._loops.get(text)
        part = self._parts.get(text)
        if loop is not None and isinstance(statement, ast.For | ast.While | ast.AsyncFor):
            part = "steps"
            mark = ast.copy_location(_call("iteration", text), statement.body[0])
            statement.body.insert(0, mark)
            if loop.loads and isinstance(statement, ast.For):
                waits = _marks("batches", [statement.iter])
                statement.iter = ast.copy_location(waits, statement.iter)
        if part is None:
            return statement
        ending = ast.Try(body=[statement], handlers=[], orelse=[], finalbody=[_call("leave")])
        body: list[ast.stmt] = [_call("enter", part), ending]
        body = [ast.copy_location(marked, statement) for marked in body]
        test = ast.copy_location(ast.Constant(value=True), statement)
        return ast.copy_location(ast.If(test=test, body=body, orelse=[]), statement)


def read_clock(folder: Path) -> dict[int, Clocked]:
    """Returns what each process's clock saw, by the number of the process."""
    return {
        int(path.stem): clocked(json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(folder.glob("*.json"))
    }


def clocked(events: Iterable[Any]) -> Clocked:
    """Returns the parts that the events tell.

    Of phases within each other the inner one counts. An import within a phase belongs to the phase,
    unless that is one of steps. What no phase is belongs to `data` before the first step, to `end`
    after the last one, to `other` between them, or where there are no steps.
    """
    ordered = [tuple(event) for event in events]
    steps = [at for at, what, part in ordered if what in {"enter", "leave"} and part == "steps"]
    first, last = (min(steps), max(steps)) if steps else (None, None)
    intervals: list[Interval] = []
    iterations: dict[str, list[int]] = {}
    stack: list[str] = []
    mark, ended = ordered[0][0], None
    for at, what, name in ordered:
        if what == "iteration":
            iterations.setdefault(name, []).append(at)
            continue
        intervals.append(Interval(_belongs(stack, mark, first, last), mark, at))
        mark = at
        if what == "enter":
            stack.append(name)
        elif what == "leave" and stack:
            stack.pop()
        elif what == "end":
            ended = at
    return Clocked(ordered[0][0], ended, tuple(intervals), iterations)


def _belongs(stack: list[str], at: int, first: int | None, last: int | None) -> str:
    phases = [part for part in stack if part != "imports"]
    if stack and stack[-1] == "garbage_collection":
        return "garbage_collection"
    if "imports" in stack and (not phases or phases[-1] == "steps"):
        return "imports"
    if phases:
        return phases[-1]
    if first is None or last is None:
        return _OTHER
    return _DATA if at < first else _END if at >= last else _OTHER
