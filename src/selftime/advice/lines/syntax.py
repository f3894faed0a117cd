"""The syntax of the program's own files, where they are at hand."""

import ast
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ["Scope", "expressions_in", "parsed", "scope_at"]

MOST_BYTES: Final = 1 << 20
"""Longer files are data, not a program that somebody wrote."""

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


def parsed(path: Path) -> ast.Module | None:
    """The syntax tree; None of what cannot be read, or is no program of this Python."""
    try:
        if path.suffix != ".py" or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def scope_at(tree: ast.Module, function: str, line: int | None) -> Scope | None:
    """What runs in frames of that name and first line; None if the file is not what it was.

    A function's first line is that of its first decorator.
    """
    if function == "<module>":
        return tree
    found = [
        node
        for node in ast.walk(tree)
        if _is_called(node, function) and line in {_first_line(node), getattr(node, "lineno", 0)}
    ]
    return found[0] if len(found) == 1 else None  # type: ignore[return-value]  # is called: a scope


def _is_called(node: ast.AST, function: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name == function
    kind = _ANONYMOUS.get(function)
    return kind is not None and isinstance(node, kind)


def _first_line(node: ast.AST) -> int:
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
