"""Names the cells of a notebook, whose code Python knows only by file names that IPython invents.

IPython compiles the code of a cell under a name such as `<ipython-input-3-0f1e2d3c4b5a>`,
ipykernel under one such as `TEMPORARY/ipykernel_PID/HASH.py`, and the code below `%%time` is called
`<timed exec>`. There is no such file. The reader's name of a cell is its execution count: `cell 3`
is `In [3]`.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from selftime.units import truncate_middle

_IPYTHON_NAME: Final = re.compile(r"<ipython-input-(\d{1,9})-([^>;\n]{1,40})>")
_IPYKERNEL_NAME: Final = re.compile(r"(?:.*[/\\])?ipykernel_\d+[/\\](\d+\.py)")
_TIMED_NAME: Final = re.compile(r"<timed (exec|eval)>")
NOTEBOOK_CELL_PATTERN: Final = r"^(?:cell \d+(?: \([^)\n]+\))?|notebook cell \([^)\n]+\))$"
"""Matches the names of cells, which stand for files."""
_LABEL: Final = re.compile(NOTEBOOK_CELL_PATTERN)
_FRAME_OF_CELL: Final = re.compile(
    r"(?:^|(?<=[;\n]))((?:[^;\n(]*[/\\])?ipykernel_\d+[/\\]\d+\.py"
    r"|<ipython-input-\d{1,9}-[^>;\n]{1,40}>|<timed (?:exec|eval)>)(?=\(\d+\): )"
)
_COUNT_OF_CELL: Final = re.compile(r"In\[(\d{1,9})\]")
_TIME_MAGIC: Final = re.compile(r"\s*(?:[\w.]+\s*=\s*)?%{1,2}time(?:\s|$)")
_LINE_THAT_IS_NO_PYTHON: Final = re.compile(r"^[%!?].*$", re.MULTILINE)
_MAGIC_BY_TIMED_NAME: Final = {"exec": "%%time", "eval": "%time"}

TIMED_CODE_FILES: Final = ("<timed exec>", "<timed eval>")
"""File names of the code below `%%time` or behind `%time`, whichever cell it is in."""
COMPILED_CELL_PREFIXES: Final = ("<ipython-input", *TIMED_CODE_FILES)
"""How the names begin that IPython gives to compiled code, where these are no paths."""


def cell_label(execution_count: int) -> str:
    """Returns the name of the cell with an execution count.

    >>> cell_label(3)
    'cell 3'
    """
    return f"cell {execution_count}"


def is_notebook_cell(file: str) -> bool:
    """Returns whether what stands for a file is the name of a notebook's cell.

    >>> is_notebook_cell("cell 3"), is_notebook_cell("notebook cell (25.py)")
    (True, True)
    >>> is_notebook_cell("train.py"), is_notebook_cell("cell.py")
    (False, False)
    """
    return _LABEL.fullmatch(file) is not None


def labels_of_compiled_names(compiled_names: Iterable[str]) -> dict[str, str]:
    """Returns the name of the cell of each name that IPython gave to code; others are left out.

    Only the older names hold the execution count. Two of one count are told apart, since a magic
    compiles a part of its cell by itself.

    >>> labels_of_compiled_names(["<ipython-input-3-0f1e>", "/tmp/ipykernel_7/25.py", "train.py"])
    {'<ipython-input-3-0f1e>': 'cell 3', '/tmp/ipykernel_7/25.py': 'notebook cell (25.py)'}
    """
    told = dict.fromkeys(compiled_names)
    numbered = {name: found for name in told if (found := _IPYTHON_NAME.fullmatch(name))}
    counts = Counter(int(found[1]) for found in numbered.values())
    labels = {}
    for name in told:
        if (found := numbered.get(name)) is not None:
            label = cell_label(int(found[1]))
            labels[name] = label if counts[int(found[1])] == 1 else f"{label} ({found[2]})"
        elif found := _IPYKERNEL_NAME.fullmatch(name):
            labels[name] = f"notebook cell ({found[1]})"
        elif found := _TIMED_NAME.fullmatch(name):
            labels[name] = f"notebook cell ({_MAGIC_BY_TIMED_NAME[found[1]]})"
    return labels


def compiled_names_in_frames(text: str) -> list[str]:
    """Returns the names that IPython gave to code, in a Python frame or a stack of them.

    >>> compiled_names_in_frames("torch/a.py(1): f;/tmp/ipykernel_7/25.py(8): train")
    ['/tmp/ipykernel_7/25.py']
    """
    return _FRAME_OF_CELL.findall(text)


def place_text(file: str, line: int | None) -> str:
    """Returns a file and a line of it, if one is known, as people read and editors open them.

    >>> place_text("train.py", 8), place_text("cell 3", 8), place_text("train.py", None)
    ('train.py:8', 'cell 3, line 8', 'train.py')
    """
    shown = truncate_middle(file)
    if line is None:
        return shown
    return f"{shown}, line {line}" if is_notebook_cell(file) else f"{shown}:{line}"


def execution_count_in(cell_name: str) -> int | None:
    """Returns the execution count in the name that IPython's tracebacks have for a cell.

    >>> execution_count_in("In[3]"), execution_count_in("file.py")
    (3, None)
    """
    found = _COUNT_OF_CELL.fullmatch(cell_name)
    return None if found is None else int(found[1])


def is_time_magic(line: str) -> bool:
    """Returns whether a line of a cell has IPython time what is below it or behind it.

    >>> is_time_magic("%%time"), is_time_magic("y = %time f(x)"), is_time_magic("%timeit f(x)")
    (True, True, False)
    """
    return _TIME_MAGIC.match(line) is not None


def python_in_cell(text: str) -> str:
    r"""Returns a cell's text with lines that are no Python, such as magics, empty.

    >>> python_in_cell("%%time\nx = 1")
    '\nx = 1'
    """
    return _LINE_THAT_IS_NO_PYTHON.sub("", text)
