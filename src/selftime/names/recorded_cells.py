"""Reads which cells of a notebook a recording names the files of, and what the cells contained.

The recorder writes them into its facts under the key `cells`, as columns (`docs/formats.md`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from selftime.names.notebook_cells import cell_label, labels_of_compiled_names

_MAX_CELLS: Final = 1000
"""Largest number of cells that are read of a file."""
_MAX_CELL_CHARACTERS: Final = 1_000_000
"""Largest number of characters of a cell whose text is read."""
_MAX_NUMBER: Final = 10**9
"""Execution counts and numbers of lines are smaller."""
_COLUMNS: Final = ("file", "cell", "above", "text")


@dataclass(frozen=True, slots=True)
class RecordedCells:
    """The cells of a notebook by the file names under which their code was compiled."""

    label_and_lines_above: Mapping[str, tuple[str, int]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Maps a compiled file name to the cell's name, and the number of lines above its code."""
    text_by_label: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "RecordedCells":
        """Returns the cells in what a recorder wrote; rows that are none are left out.

        >>> cells = {"file": ["/tmp/ipykernel_7/25.py"], "cell": [3], "above": [2]}
        >>> RecordedCells.from_facts({"cells": {**cells, "text": ["x = 1"]}}).text_by_label
        mappingproxy({'cell 3': 'x = 1'})
        """
        told = facts.get("cells")
        columns = [told.get(name) for name in _COLUMNS] if isinstance(told, dict) else []
        if not columns or not all(isinstance(column, list) for column in columns):
            return cls()
        places: dict[str, tuple[str, int]] = {}
        texts: dict[str, str] = {}
        rows: Iterable[tuple[Any, ...]] = zip(*columns, strict=False)
        for file, count, above, text in islice(rows, _MAX_CELLS):
            if not isinstance(file, str) or not (_is_number(count) and _is_number(above)):
                continue
            label = cell_label(count)
            places[file] = (label, above)
            if isinstance(text, str) and len(text) <= _MAX_CELL_CHARACTERS:
                texts.setdefault(label, text)
        return cls(MappingProxyType(places), MappingProxyType(texts))

    def with_compiled_names(self, compiled_names: Iterable[str]) -> "RecordedCells":
        """Returns the cells with those that other names tell by their form alone."""
        unknown = (name for name in compiled_names if name not in self.label_and_lines_above)
        guessed = {name: (label, 0) for name, label in labels_of_compiled_names(unknown).items()}
        places = {**guessed, **self.label_and_lines_above}
        return RecordedCells(MappingProxyType(places), self.text_by_label)

    def with_cells_of(self, other: "RecordedCells") -> "RecordedCells":
        """Returns these cells, and those of another recording of the same notebook."""
        return RecordedCells(
            MappingProxyType({**other.label_and_lines_above, **self.label_and_lines_above}),
            MappingProxyType({**other.text_by_label, **self.text_by_label}),
        )


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < _MAX_NUMBER
