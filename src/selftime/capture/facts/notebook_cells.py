"""Records which cells of a notebook the files are that IPython invented for their code.

A trace names a cell by the file name that its code was compiled under, which tells nobody which
cell that is. The shell knows the execution count by that name, and keeps what the cells contained
when they ran: a cell may be edited or deleted afterwards.
"""

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from selftime.names.notebook_cells import TIMED_CODE_FILES, execution_count_in, is_time_magic

MAX_CELLS: Final = 200
"""Largest number of cells that are recorded."""
MAX_CELL_CHARACTERS: Final = 100_000
"""Largest number of characters of a cell whose text is recorded; of a longer one only the count."""
MAX_CHARACTERS: Final = 1_000_000
"""Largest number of characters that are recorded of all cells."""

_CALL_OF_CELL_MAGIC: Final = "get_ipython().run_cell_magic("
"""What a cell that begins with a magic of the whole cell is compiled to, in one line."""
_FUNCTION_NODES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class _Cell(NamedTuple):
    """What is known of the code of one compiled file name."""

    execution_count: int
    lines_above: int
    """Number of lines of the cell above the first line of the code."""
    text: str
    """The whole cell."""


def current_cell_count() -> int:
    """Returns the execution count of the cell that runs, or ran last; 0 outside of IPython."""
    shell = _shell()
    return 0 if shell is None else _last_cell(shell)


def cell_facts(files: Iterable[str], first_cell: int = 0) -> dict[str, list[Any]] | None:
    """Returns which cells compiled file names are of, as JSON columns; None if of none.

    Args:
        files: Names of the files that occur in a recording; those of no cell are left out.
        first_cell: The execution count of the cell in which the recording began.
    """
    shell = _shell()
    if shell is None:
        return None
    columns: dict[str, list[Any]] = {"file": [], "cell": [], "above": [], "text": []}
    characters_left = MAX_CHARACTERS
    for file in dict.fromkeys(files):
        cell = _cell_of_file(shell, file, first_cell)
        if cell is None:
            continue
        size = len(cell.text)
        is_kept = size <= min(MAX_CELL_CHARACTERS, characters_left)
        characters_left -= size if is_kept else 0
        text = cell.text if is_kept else None
        row = (file, cell.execution_count, cell.lines_above, text)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
        if len(columns["file"]) == MAX_CELLS:
            break
    return columns if columns["file"] else None


def _shell() -> Any:
    """Returns IPython's shell; None outside of IPython, which is not imported for this."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _last_cell(shell: Any) -> int:
    """Returns the execution count of the last cell that began.

    `shell.execution_count` is that of the next cell already, in newer versions.
    """
    return len(shell.history_manager.input_hist_raw) - 1


def _cell_of_file(shell: Any, file: str, first_cell: int) -> _Cell | None:
    """Returns the cell of a compiled file name; None if it is of none, or may be of two.

    It may be the code of the whole cell, or what a magic of the whole cell compiles of it. Newer
    versions of IPython count one more for that.
    """
    if file in TIMED_CODE_FILES:
        return _cell_of_timed_code(shell, first_cell)
    named = _execution_count(shell, file)
    if named is None:
        return None
    compiled = "".join(linecache.getlines(file))
    found = {}
    for count in (named - 1, named):
        typed = _text_of_cell(shell.history_manager.input_hist_raw, count)
        parsed = _text_of_cell(shell.history_manager.input_hist_parsed, count)
        above = _lines_above(typed.splitlines(), compiled.splitlines())
        is_whole_cell = count == named and compiled.strip() == parsed.strip() != ""
        if above is not None and (is_whole_cell or typed.lstrip().startswith("%%")):
            found[typed] = _Cell(count, above, typed)
        elif is_whole_cell:
            found[typed] = _Cell(count, 0, compiled)  # a magic over several lines was joined
    return next(iter(found.values())) if len(found) == 1 else None


def _execution_count(shell: Any, file: str) -> int | None:
    """Returns the execution count of a compiled file name, as tracebacks of IPython show it."""
    named = shell.compile.format_code_name(file)
    return None if named is None else execution_count_in(str(named[1]))


def _text_of_cell(history: list[str], count: int) -> str:
    """Returns the text of a cell in the history; empty if that was cleared."""
    return str(history[count]) if 0 < count < len(history) else ""


def _lines_above(typed: list[str], compiled: list[str]) -> int | None:
    """Returns how many lines a cell has above its compiled code; None if the code is not its end.

    IPython leaves out empty lines at the beginning, magics compile what is below them, and lines
    with magics are replaced by calls. Nothing else of a cell is left out.
    """
    while typed and not typed[-1].strip():
        typed = typed[:-1]
    while compiled and not compiled[-1].strip():
        compiled = compiled[:-1]
    if len(compiled) == 1 and compiled[0].startswith(_CALL_OF_CELL_MAGIC):
        return next((at for at, line in enumerate(typed) if line.strip()), None)
    above = len(typed) - len(compiled)
    is_left_out = (not line.strip() or line.startswith("%%") for line in typed[: max(above, 0)])
    if above < 0 or not compiled or not all(is_left_out):
        return None
    for own, other in zip(typed[above:], compiled, strict=True):
        is_replaced = not other.strip() or "get_ipython()" in other
        if not is_replaced and own.strip() != other.strip():
            return None
    return above


def _cell_of_timed_code(shell: Any, first_cell: int) -> _Cell | None:
    """Returns the cell of the code of `%%time` and `%time`, which has one name in all cells.

    It is known if only one cell since the recording began has such code, and no cell before
    defines functions in such code, which may run later.
    """
    found: dict[tuple[str, int], int] = {}
    for count in range(1, _last_cell(shell) + 1):
        text = _text_of_cell(shell.history_manager.input_hist_raw, count)
        for above in _lines_above_timed_code(text.splitlines()):
            if count >= first_cell or _defines_functions(text, above):
                found[text, above] = count
    if len(found) != 1:
        return None
    [((text, above), count)] = found.items()
    return _Cell(count, above, text)


def _lines_above_timed_code(lines: list[str]) -> Iterator[int]:
    """Yields for each magic in a cell that times code how many lines stand above that code."""
    for number, line in enumerate(lines):
        if not is_time_magic(line):
            continue
        if line.lstrip().startswith("%%"):
            number += 1  # noqa: PLW2901 - the code is below the magic
            while number < len(lines) and not lines[number].strip():
                number += 1  # noqa: PLW2901 - IPython leaves out empty lines at the beginning
        yield number


def _defines_functions(text: str, lines_above: int) -> bool:
    """Returns whether the code below a magic defines functions; also if it cannot be parsed."""
    try:
        tree = ast.parse("\n".join(text.splitlines()[lines_above:]))
    except (SyntaxError, ValueError, RecursionError):
        return True
    return any(isinstance(node, _FUNCTION_NODES) for node in ast.walk(tree))
