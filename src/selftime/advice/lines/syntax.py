"""The syntax of the program's own files, where they are at hand."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from selftime.advice.base import Where
from selftime.trace import Trace

MOST_FILES: Final = 50
"""Of a program's own files those with most operators are read."""


MOST_BYTES: Final = 1 << 20
"""Longer files are data, not a program that somebody wrote."""
_SHARE: Final = "\\\\"
"""How the drive of a path on another machine begins, on Windows; no trace may make us ask that."""
Scope: TypeAlias = (
    ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.Lambda
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
    | ast.Module
)
"""What has frames of its own when it runs."""
_ANONYMOUS: Final[dict[str, type[Scope]]] = {
    "<lambda>": ast.Lambda,
    "<listcomp>": ast.ListComp,
    "<setcomp>": ast.SetComp,
    "<dictcomp>": ast.DictComp,
    "<genexpr>": ast.GeneratorExp,
}
_ON_THEIR_OWN: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def called(trace: Trace, name: str) -> Where:
    """The one call of a function of that name in the program's own files; else no line.

    Files are those that the trace's operators come from. One that has changed since is read as it
    is now.
    """
    found = [place for file in _files(trace) for place in _calls(file, name)]
    return found[0] if len(found) == 1 else Where()


def _files(trace: Trace) -> Iterator[str]:
    counts = trace.lines["file"].drop_nulls().value_counts(sort=True, name="operators")
    yield from counts["file"].cast(str).head(MOST_FILES).to_list()


def _calls(file: str, name: str) -> Iterator[Where]:
    tree = parsed(Path(file))
    if tree is None:
        return
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) == name:
            around = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
            inner = max(around, key=lambda f: f.lineno, default=None)
            yield Where(file, node.lineno, inner.name if inner else "<module>", "static")


def _name(function: ast.expr) -> str | None:
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return None


def parsed(path: Path) -> ast.Module | None:
    """The syntax tree; None of what cannot be read, or is no program of this Python."""
    try:
        if path.suffix != ".py" or path.drive.startswith(_SHARE):
            return None
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def scope_at(tree: ast.Module, function: str, line: int | None) -> Scope | None:
    """What runs in frames of that name at that line; None if the file is not what it was.

    The line of a frame is the first of its function, or of its first decorator. Of a frame that was
    open when the recording began it is the line that ran then: of the innermost function around it.
    """
    if function == "<module>":
        return tree
    named = [node for node in ast.walk(tree) if _is_called(node, function)]
    begun = [node for node in named if line in {first_line(node), getattr(node, "lineno", 0)}]
    around = [node for node in named if _holds(node, line)]
    found = begun or sorted(around, key=first_line)[-1:]
    return found[0] if len(found) == 1 else None  # type: ignore[return-value]  # is called: a scope


def _holds(node: ast.AST, line: int | None) -> bool:
    last = getattr(node, "end_lineno", None) or 0
    return line is not None and first_line(node) <= line <= last


def _is_called(node: ast.AST, function: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name == function
    kind = _ANONYMOUS.get(function)
    return kind is not None and isinstance(node, kind)


def first_line(node: ast.AST) -> int:
    """The line that Python gives a function's frames: of its first decorator, if it has one."""
    decorators = getattr(node, "decorator_list", [])
    return min((d.lineno for d in decorators), default=getattr(node, "lineno", 0))


def expressions_in(scope: Scope) -> list[ast.AST]:
    """Every node that runs in frames of this scope: without functions and classes inside it."""
    body = getattr(scope, "body", None)
    waiting: list[ast.AST] = list(body if isinstance(body, list) else ast.iter_child_nodes(scope))
    found: list[ast.AST] = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, _ON_THEIR_OWN):
            continue
        found.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return found


def repeated_in(scope: Scope) -> frozenset[int]:
    """Identities of the nodes that can run many times in one frame: those in a loop's body."""
    found: set[int] = set()
    for node in expressions_in(scope):
        for part in _repeated_parts(node):
            found.update(id(inner) for inner in ast.walk(part))
    return frozenset(found)


def _repeated_parts(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.For() | ast.AsyncFor():
            return [node.target, *node.body]
        case ast.While():
            return [node.test, *node.body]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [node]
    return []
