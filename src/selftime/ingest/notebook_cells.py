"""Replaces the file names that IPython invents for the code of cells by the names of the cells.

Whatever is read of a recording goes through here, so that a cell has one name on every surface, and
its lines the numbers that they have in the notebook.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

import polars as pl

from selftime.names.notebook_cells import compiled_names_in_frames, place_text
from selftime.names.recorded_cells import RecordedCells

_MAX_DEPTH: Final = 20
"""Greatest depth of JSON values in which file names are replaced."""
_SECTIONS_WITHOUT_FILES: Final = ("cells", "ops")
"""Facts without file names to replace, or with very long lists."""
_PLACE_IN_STEP_KIND: Final = re.compile(r"(?<= at )([^/\\]+):(\d{1,9})")
_MARKS_OF_COMPILED_NAMES: Final = ("ipykernel_", "<ipython-input-", "<timed e")
"""Of each name that IPython gives to code the text holds one of these."""


def name_notebook_cells(strings: pl.Series, metadata: dict[str, Any]) -> pl.Series:
    """Returns a trace's strings with cells named in Python frames, and names them in its facts.

    Args:
        strings: The distinct strings of the events, as a categorical series.
        metadata: Top-level keys of the file; its `selftime` is replaced.
    """
    told = metadata.get("selftime")
    facts: dict[str, Any] = told if isinstance(told, dict) else {}
    texts = strings.cast(pl.String)
    marked = texts.filter(texts.str.contains_any(list(_MARKS_OF_COMPILED_NAMES)))
    framed = [name for text in marked.to_list() for name in compiled_names_in_frames(text)]
    cells = RecordedCells.from_facts(facts)
    cells = cells.with_compiled_names([*framed, *_files_in_json(facts)])
    if not cells.label_and_lines_above:
        return strings
    if facts:
        metadata["selftime"] = with_cells_named(facts, cells)
    return with_cells_named_in_frames(texts, cells).cast(pl.Categorical)


def with_cells_named_in_frames(strings: pl.Series, cells: RecordedCells) -> pl.Series:
    """Returns texts in which the Python frames name cells, and lines as the cells count them."""
    files = list(cells.label_and_lines_above)
    if not files:
        return strings
    any_file = "|".join(map(re.escape, sorted(files, key=len, reverse=True)))
    frame = re.compile(rf"(?:^|(?<=[;\n]))({any_file})\((\d{{1,9}})\)(?=: )")

    def named(found: "re.Match[str]") -> str:
        label, above = cells.label_and_lines_above[found[1]]
        return f"{label}({int(found[2]) + above})"

    marked = strings.str.contains_any(files).arg_true()
    changed = [frame.sub(named, text) for text in strings.gather(marked).to_list()]
    return strings.scatter(marked, changed) if changed else strings


def with_cells_named(value: Any, cells: RecordedCells, depth: int = 0) -> Any:
    """Returns JSON values in which cells are named where a `file` and its `line` stand together.

    They stand in one object, or as two columns of a table whose `files` are listed once.
    """
    if depth > _MAX_DEPTH or not cells.label_and_lines_above:
        return value
    if isinstance(value, list):
        if not value or not isinstance(value[0], dict | list):
            return value
        return [with_cells_named(one, cells, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    told = {
        key: one if key in _SECTIONS_WITHOUT_FILES else with_cells_named(one, cells, depth + 1)
        for key, one in value.items()
    }
    if isinstance(told.get("files"), list):
        return {**told, **_columns_with_cells_named(told, cells)}
    file, line = told.get("file"), told.get("line")
    if isinstance(file, str) and file in cells.label_and_lines_above:
        label, above = cells.label_and_lines_above[file]
        told["file"] = label
        if type(line) is int:
            told["line"] = line + above
    return told


def _columns_with_cells_named(table: dict[str, Any], cells: RecordedCells) -> dict[str, Any]:
    """Returns the columns of a table that change where its `files` are cells."""
    files: list[Any] = table["files"]
    places = [
        cells.label_and_lines_above.get(file) if isinstance(file, str) else None for file in files
    ]
    if not any(places):
        return {}
    renamed = [
        file if place is None else place[0] for file, place in zip(files, places, strict=True)
    ]
    file_column, lines = table.get("file"), table.get("line")
    if not isinstance(file_column, list) or not isinstance(lines, list):
        return {"files": renamed}
    above = {at: place[1] for at, place in enumerate(places) if place is not None and place[1]}
    moved = [
        line + above.get(at, 0) if type(line) is int and type(at) is int else line
        for at, line in zip(file_column, lines, strict=False)
    ]
    return {"files": renamed, "line": moved} if len(moved) == len(lines) else {"files": renamed}


def _files_in_json(value: Any, depth: int = 0) -> Iterator[str]:
    """Yields the texts that JSON values have as `file`, or as one of `files`."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, one in value.items():
            if key == "file" and isinstance(one, str):
                yield one
            elif key == "files" and isinstance(one, list):
                yield from (file for file in one if isinstance(file, str))
            elif key not in _SECTIONS_WITHOUT_FILES:
                yield from _files_in_json(one, depth + 1)
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        for one in value:
            yield from _files_in_json(one, depth + 1)


def cells_of_ledger(lines: list[dict[str, Any]], of_trace: RecordedCells) -> RecordedCells:
    """Returns the cells that the lines of a ledger name; of its trace those that it lacks."""
    told = next((line for line in lines if "cells" in line), {})
    cells = RecordedCells.from_facts(told).with_cells_of(of_trace)
    return cells.with_compiled_names(_files_in_json(lines))


def step_kind_with_cell_named(name: str, cells: RecordedCells) -> str:
    """Returns the name of a kind of steps, which may end in the file and line of its loop."""
    found = _PLACE_IN_STEP_KIND.search(name)
    if found is None:
        return name
    for file, (label, above) in cells.label_and_lines_above.items():
        if PurePath(file).name == found[1]:
            place = place_text(label, int(found[2]) + above)
            return f"{name[: found.start(1)]}{place}{name[found.end() :]}"
    return name
