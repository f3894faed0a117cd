"""Tells from the user's source file whether code that runs uses what a line imports."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from selftime.advice.lines.source_syntax import parse_file

_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS: Final = (ast.Import, ast.ImportFrom)


def is_import_used(file: str | None, line: int | None) -> bool | None:
    """Returns whether code that may run uses a name that the import at a line binds.

    Functions run if their name occurs in code of the module itself, or in functions that run;
    methods if their class does. So a use may be told that never happens, but none is missed within
    the file. An import within a function is used. None if the file cannot be read, or has no import
    of known names there.
    """
    tree = None if file is None or line is None else parse_file(Path(file))
    if tree is None or line is None:
        return None
    imports = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _IMPORTS) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    names = {alias.asname or alias.name.partition(".")[0] for one in imports for alias in one.names}
    if not names or "*" in names:
        return None
    at_module_level = {id(node) for node in _nodes_outside_of_functions(tree)}
    if not all(id(node) in at_module_level for node in imports):
        return True
    return not names.isdisjoint(_names_in_running_code(tree))


def _names_in_running_code(tree: ast.Module) -> set[str]:
    """Returns the names that code uses which runs if the module does, as far as names tell."""
    definitions: defaultdict[str, list[_Definition]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            definitions[node.name].append(node)
    used: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        names = set(_names_used(todo.pop())) - used
        used |= names
        todo += [definition for name in names for definition in definitions.get(name, ())]
    return used


def _names_used(scope: ast.AST) -> Iterator[str]:
    """Yields the names that a module or a definition uses itself; a class with its methods."""
    for node in _nodes_outside_of_functions(scope):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if isinstance(scope, ast.ClassDef):
                    yield name


def _nodes_outside_of_functions(scope: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes below a scope, of definitions in it only their decorators and defaults."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, _DEFINITIONS):
            yield from _nodes_outside_of_functions(child)
            continue
        outside = [*child.decorator_list]
        if isinstance(child, ast.ClassDef):
            outside += [*child.bases, *(keyword.value for keyword in child.keywords)]
        else:
            outside += [*child.args.defaults, *filter(None, child.args.kw_defaults)]
        for node in outside:
            yield node
            yield from _nodes_outside_of_functions(node)
