"""Parses the user's source files to find functions, loops and calls in them."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from selftime.advice.rule_definition import Where
from selftime.analysis.notebook_cells import source_text_of_cell
from selftime.names.notebook_cells import python_in_cell
from selftime.trace import Trace

MAX_READ_SOURCE_FILES: Final = 50
"""Largest number of source files to read; files whose lines ran most operators come first."""


MAX_SOURCE_FILE_BYTES: Final = 1 << 20
"""Largest source file to read, in bytes; a larger file is probably data."""
_WINDOWS_UNC_PATH_PREFIX: Final = "\\\\"
"""Prefix of Windows paths on other machines, which are not read: a trace must not make this program
contact another machine."""
SyntaxScope: TypeAlias = (
    ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.Lambda
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
    | ast.Module
)
"""AST nodes, such as functions and comprehensions, that run in a Python frame of their own."""
_AST_TYPE_BY_ANONYMOUS_SCOPE_NAME: Final[dict[str, type[SyntaxScope]]] = {
    "<lambda>": ast.Lambda,
    "<listcomp>": ast.ListComp,
    "<setcomp>": ast.SetComp,
    "<dictcomp>": ast.DictComp,
    "<genexpr>": ast.GeneratorExp,
}
"""Maps function names in frames of unnamed scopes, such as `<lambda>`, to AST node types."""
_NESTED_SCOPE_AST_TYPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""AST node types whose body does not run in the frame of the code around it."""


def line_of_only_call(trace: Trace, function: str) -> Where:
    """Returns the line that calls a function, if the user's files contain just one call of it.

    The files are those of the trace's operators, as they are now.
    """
    found = [
        place
        for file in _source_files_of_operators(trace)
        for place in _places_calling_function(trace, file, function)
    ]
    return found[0] if len(found) == 1 else Where()


def _source_files_of_operators(trace: Trace) -> Iterator[str]:
    """Yields the source files whose lines ran operators, the file with most operators first."""
    counts = trace.lines["file"].drop_nulls().value_counts(sort=True, name="operators")
    yield from counts["file"].cast(str).head(MAX_READ_SOURCE_FILES).to_list()


def _places_calling_function(trace: Trace, file: str, function: str) -> Iterator[Where]:
    """Yields the line of each call of a function named `function` in a source file."""
    tree = parse_cell(trace, file) or parse_file(Path(file))
    if tree is None:
        return
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called_name(node.func) == function:
            around = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
            inner = max(around, key=lambda f: f.lineno, default=None)
            yield Where(file, node.lineno, inner.name if inner else "<module>", "static")


def _called_name(callee: ast.expr) -> str | None:
    """Returns the name of a called function or method; None for other expressions."""
    match callee:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return None


def parse_cell(trace: Trace, cell: str) -> ast.Module | None:
    """Returns the syntax tree of a notebook's cell by its name; None if its text is not known.

    Lines that are no Python, such as magics, are empty in it.
    """
    text = source_text_of_cell(trace, cell)
    try:
        return None if text is None else _parse_text_of_cell(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=MAX_READ_SOURCE_FILES)
def _parse_text_of_cell(text: str) -> ast.Module:
    """Returns the syntax tree of a cell; nobody changes it."""
    return ast.parse(python_in_cell(text))


def parse_file(path: Path) -> ast.Module | None:
    """Returns the syntax tree of a Python file; None if it cannot be read or parsed."""
    try:
        if path.suffix != ".py" or path.drive.startswith(_WINDOWS_UNC_PATH_PREFIX):
            return None
        if not path.is_file() or path.stat().st_size > MAX_SOURCE_FILE_BYTES:
            return None
        return _parse_version_of_file(path, path.stat().st_mtime_ns, path.stat().st_size)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=MAX_READ_SOURCE_FILES)
def _parse_version_of_file(path: Path, _modified_ns: int, _size: int) -> ast.Module:
    """Returns the syntax tree of a file as it was last written; nobody changes the tree."""
    return ast.parse(path.read_bytes())


def scope_of_frame(tree: ast.Module, function: str, line: int | None) -> SyntaxScope | None:
    """Returns the function or comprehension node of a recorded frame; None if not in the tree.

    The line of a frame is the first of its function, or of its first decorator. A frame that was
    open when the recording began has the line that ran then: the innermost function around it.
    """
    if function == "<module>":
        return tree
    named = [node for node in ast.walk(tree) if _is_scope_named(node, function)]
    begun = [
        node for node in named if line in {first_line_of_scope(node), getattr(node, "lineno", 0)}
    ]
    around = [node for node in named if _contains_line(node, line)]
    found = begun or sorted(around, key=first_line_of_scope)[-1:]
    return found[0] if len(found) == 1 else None  # type: ignore[return-value]  # is called: a scope


def class_around_frame(tree: ast.Module, function: str, line: int | None) -> ast.ClassDef | None:
    """Returns the class in whose body the function of a recorded frame is; None if in none."""
    scope = scope_of_frame(tree, function, line)
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return next((node for node in classes if any(scope is one for one in node.body)), None)


def _contains_line(node: ast.AST, line: int | None) -> bool:
    """Returns whether an AST node spans a source line."""
    last = getattr(node, "end_lineno", None) or 0
    return line is not None and first_line_of_scope(node) <= line <= last


def _is_scope_named(node: ast.AST, function: str) -> bool:
    """Returns whether an AST node defines a scope that Python frames name `function`."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name == function
    kind = _AST_TYPE_BY_ANONYMOUS_SCOPE_NAME.get(function)
    return kind is not None and isinstance(node, kind)


def first_line_of_scope(node: ast.AST) -> int:
    """Returns the first line of a function as frames report it: of its first decorator, if any."""
    decorators = getattr(node, "decorator_list", [])
    return min((d.lineno for d in decorators), default=getattr(node, "lineno", 0))


def nodes_in_scope(scope: SyntaxScope) -> list[ast.AST]:
    """Returns the AST nodes that run in a scope's own frame, not in nested functions or classes."""
    body = getattr(scope, "body", None)
    waiting: list[ast.AST] = list(body if isinstance(body, list) else ast.iter_child_nodes(scope))
    found: list[ast.AST] = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, _NESTED_SCOPE_AST_TYPES):
            continue
        found.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return found


def ids_of_nodes_in_loops(scope: SyntaxScope) -> frozenset[int]:
    """Returns the `id()` of each AST node in a loop, which can run many times in one frame."""
    found: set[int] = set()
    for node in nodes_in_scope(scope):
        for part in _parts_run_in_every_iteration(node):
            found.update(id(inner) for inner in ast.walk(part))
    return frozenset(found)


def _parts_run_in_every_iteration(node: ast.AST) -> list[ast.AST]:
    """Returns the parts of a loop or comprehension node that run in every iteration."""
    match node:
        case ast.For() | ast.AsyncFor():
            return [node.target, *node.body]
        case ast.While():
            return [node.test, *node.body]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [node]
    return []
