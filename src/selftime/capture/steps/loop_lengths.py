"""Tells how many iterations a `for` loop makes in all, before it has made them.

The header of the loop is read from its source file. Where it names a range, a list or another
container whose length is known, the names are looked up in the running frame. No code of the
program runs for that.
"""

import ast
import inspect
import linecache
import operator
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final

from selftime.capture.code_loops import CodeLoop

MAX_HEADER_LINES: Final = 5
"""Largest number of source lines that the header of a loop may have."""

_SIZED_TYPES: Final = (list, tuple, range, dict, set, frozenset, str, bytes)
_SAME_LENGTH_CALLS: Final = frozenset({"enumerate", "reversed", "sorted", "list", "tuple", "tqdm"})
"""Functions that yield as many items as their first argument has."""
_RANGE_CALLS: Final = frozenset({"range", "trange"})
_INTEGER_OPERATORS: Final[Mapping[type, Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def known_iterations(loop: CodeLoop, frame: FrameType) -> int | None:
    """Returns the number of iterations of a loop that a frame executes; None if unknown."""
    header = _loop_header(loop.code.co_filename, loop.line)
    return None if header is None else _Names(frame).length(header)


def _loop_header(file: str, line: int) -> ast.expr | None:
    """Returns what the `for` statement at a source line iterates over; None for other lines."""
    text = ""
    for number in range(line, line + MAX_HEADER_LINES):
        text += linecache.getline(file, number).strip() + "\n"
        if not text.startswith("for "):
            return None
        for source in (f"{text}    pass", text):
            try:
                (statement,) = ast.parse(source).body
            except (SyntaxError, ValueError):  # it goes on in the next line
                continue
            return statement.iter if isinstance(statement, ast.For) else None
    return None


class _Names:
    """Evaluates plain expressions with the names of a frame."""

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame

    def length(self, node: ast.expr) -> int | None:
        """Returns the number of items that an expression yields; None if unknown."""
        if isinstance(node, ast.Call):
            return self._length_of_call(node)
        if isinstance(node, ast.Tuple | ast.List):
            has_star = any(isinstance(item, ast.Starred) for item in node.elts)
            return None if has_star else len(node.elts)
        return _length(self._value(node))

    def _length_of_call(self, node: ast.Call) -> int | None:
        name = _function_name(node)
        if name in _RANGE_CALLS:
            values = [self._value(argument) for argument in node.args]
            is_range = 1 <= len(values) <= 3 and all(type(value) is int for value in values)
            return len(range(*values)) if is_range and values[2:] != [0] else None
        if name == "zip":
            lengths = [self.length(argument) for argument in node.args]
            return min((length for length in lengths if length is not None), default=None)
        return self.length(node.args[0]) if name in _SAME_LENGTH_CALLS and node.args else None

    def _value(self, node: ast.expr) -> Any:
        """Returns the value of an expression; None if it is not known without running code."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            names = self._frame.f_locals
            return names[node.id] if node.id in names else self._frame.f_globals.get(node.id)
        if isinstance(node, ast.Attribute):
            return inspect.getattr_static(self._value(node.value), node.attr, None)
        if isinstance(node, ast.Call) and _function_name(node) == "len" and len(node.args) == 1:
            return self.length(node.args[0])
        if isinstance(node, ast.BinOp) and type(node.op) in _INTEGER_OPERATORS:
            left, right = self._value(node.left), self._value(node.right)
            if type(left) is int and type(right) is int:
                return _INTEGER_OPERATORS[type(node.op)](left, right)
        return None


def _length(value: Any) -> int | None:
    return len(value) if type(value) in _SIZED_TYPES else None


def _function_name(node: ast.Call) -> str | None:
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else None
