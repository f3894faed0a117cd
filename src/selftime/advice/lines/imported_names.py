"""Tells from the user's source file whether anything uses what a line imports."""

import ast
from pathlib import Path
from typing import Final

from selftime.advice.lines.source_syntax import parse_file

_IMPORTS: Final = (ast.Import, ast.ImportFrom)


def is_import_used(file: str | None, line: int | None) -> bool | None:
    """Returns whether the file of an import names anywhere what the import at a line binds.

    What is named in a function that never runs counts as used, and so does all that the
    `__init__.py` of a package imports, what is imported within a function, and `*`. None if the
    file cannot be read.
    """
    tree = None if file is None or line is None else parse_file(Path(file))
    if tree is None or line is None or file is None:
        return None
    imports = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _IMPORTS) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    names = {alias.asname or alias.name.partition(".")[0] for one in imports for alias in one.names}
    is_open = not names or "*" in names or Path(file).name == "__init__.py"
    if is_open or not all(one in tree.body for one in imports):
        return True
    return not names.isdisjoint(_names_in(tree))


def _names_in(tree: ast.Module) -> set[str]:
    """Returns the names that code uses, and the texts in it, such as those of `__all__`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                found.add(name)
    return found
