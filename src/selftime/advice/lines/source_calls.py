"""The line on which a program calls a function, by reading its source where that is at hand.

A setting is made once, before anything is recorded: no event of the trace stands for it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from selftime.advice.base import Where
from selftime.advice.lines.syntax import parsed
from selftime.trace import Trace

__all__ = ["called"]

MOST_FILES: Final = 50
"""Of a program's own files those with most operators are read."""


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
