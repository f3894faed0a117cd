"""Compresses the tables of a report, and chooses the tables that fit the report's size limit.

`frontend/src/data/packed.ts` decompresses them; `tests/golden/packed.json` tests both.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

_ZLIB_COMPRESSION_LEVEL: Final = 6
"""Level of zlib's compression: 2 % larger than level 9, in four fifths of the time."""
_UNITS_OF_MOSTLY_INCREASING_COLUMNS: Final = ("instant", "id")
"""Units of columns that mostly increase from row to row; they are stored as row-to-row
differences."""
_COLUMN_WITH_SIMILAR_VALUES_BY_COLUMN: Final = {"busy": "duration"}
"""Maps a column to another with nearly equal values; only the differences between them are
stored."""


@dataclass(frozen=True, slots=True)
class ReportItemSizes:
    """A table or source file that a report may include: its priority, and each version's bytes."""

    priority: int
    """Items of lower priority number are included first."""
    sizes: tuple[int, ...]
    """Size in bytes of each version of the item, from the shortest to the complete one."""


def choose_fitting_versions(
    candidates: Sequence[ReportItemSizes], max_bytes: int
) -> list[int | None]:
    """Returns for each candidate the index of the version to include; None to leave it out.

    First, by priority, each candidate gets its smallest version; then, by priority again, the
    largest version that still fits.

    >>> small, large = ReportItemSizes(0, (10, 50)), ReportItemSizes(1, (20, 30))
    >>> choose_fitting_versions([small, large], 60)
    [0, 1]
    >>> choose_fitting_versions([small, large], 80)
    [1, 1]
    >>> choose_fitting_versions([small, large], 15)
    [0, None]
    """
    versions: list[int | None] = [None] * len(candidates)
    order = sorted(range(len(candidates)), key=lambda index: candidates[index].priority)
    for index in order:
        sizes = candidates[index].sizes
        if sizes and sizes[0] <= max_bytes:
            versions[index] = 0
            max_bytes -= sizes[0]
    for index in order:
        smallest = versions[index]
        if smallest is None:
            continue
        sizes = candidates[index].sizes
        fitting = [version for version, size in enumerate(sizes) if size - sizes[0] <= max_bytes]
        versions[index] = max(fitting)
        max_bytes -= sizes[max(fitting)] - sizes[0]
    return versions


def compress_json(value: Any) -> str:
    """Returns a JSON value compressed with zlib (RFC 1950), in base64."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return b64encode(zlib.compress(text.encode("ascii"), _ZLIB_COMPRESSION_LEVEL)).decode("ascii")


def html_safe_json(value: Any) -> str:
    """Returns a value as JSON text, in which characters special in HTML such as `<` are escaped."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def compress_page_columns(
    columns: Mapping[str, Mapping[str, Any]], units: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Returns columns in short form: a constant, a copy of another column, or differences.

    >>> ones, times = {"values": [1, 1]}, {"values": [500, 600]}
    >>> compress_page_columns({"a": ones, "start": times, "b": ones}, {"start": "instant"})
    {'a': {'same': 1}, 'start': {'steps': [500, 100]}, 'b': {'same': 1}}
    """
    compressed: dict[str, dict[str, Any]] = {}
    for name, column in columns.items():
        compressed[name] = _compress_page_column(
            name, column, columns, compressed, units.get(name, "text")
        )
    return compressed


def _compress_page_column(
    name: str,
    column: Mapping[str, Any],
    columns: Mapping[str, Mapping[str, Any]],
    earlier_columns: Mapping[str, Any],
    unit: str,
) -> dict[str, Any]:
    """Returns one column as a constant, a copy of an earlier column, differences, or as it is."""
    values = column.get("values")
    if not values:
        return dict(column)
    if values.count(values[0]) == len(values) and len({type(value) for value in values}) == 1:
        return {"same": values[0]}
    equal_columns = [
        other
        for other in earlier_columns
        if _are_equal_in_json(values, columns[other].get("values"))
    ]
    if equal_columns:
        return {"like": equal_columns[0]}
    if unit in _UNITS_OF_MOSTLY_INCREASING_COLUMNS and _are_all_integers(values):
        return {"steps": [values[0], *(after - last for last, after in pairwise(values))]}
    other = _COLUMN_WITH_SIMILAR_VALUES_BY_COLUMN.get(name)
    if other is not None and other in earlier_columns:
        return _differences_from_other_column(values, other, columns[other]["values"])
    return dict(column)


def _are_equal_in_json(values: list[Any], other_values: list[Any] | None) -> bool:
    """Returns whether both lists are equal as JSON text, in which 1, 1.0 and true differ."""
    return values == other_values and all(
        type(value) is type(other) for value, other in zip(values, other_values, strict=True)
    )


def _are_all_integers(values: list[Any]) -> bool:
    return all(type(value) is int for value in values)


def _differences_from_other_column(
    values: list[Any], other_name: str, other_values: list[Any]
) -> dict[str, Any]:
    """Returns a column as differences from another one; unchanged unless both hold integers."""
    pairs = list(zip(values, other_values, strict=True))
    if not all(
        value is None or (type(value) is int and type(other) is int) for value, other in pairs
    ):
        return {"values": values}
    return {
        "beside": other_name,
        "more": [None if value is None else value - other for value, other in pairs],
    }
