"""Values as a report carries them: small, and as text that no page can take for markup.

`frontend/src/packed.ts` unpacks them; `tests/golden/packed.json` holds both to the same.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

_LEVEL: Final = 6
"""A report is 2 % longer than at 9, and made in four fifths of the time."""
_STEPPED: Final = ("instant", "id")
"""Units of columns that mostly grow from row to row."""
_ALIKE: Final = {"busy": "duration"}
"""Columns that mostly equal another one, where they are known."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that a report may carry, in versions from the least to the most."""

    rank: int
    """What has a lower one is carried first."""
    sizes: tuple[int, ...]
    """Bytes of each version."""


def chosen(offers: Sequence[Offer], room: int) -> list[int | None]:
    """The version of each offer that is carried, None where there is no room for any.

    By rank, every offer gets its least version before any gets more; then, by rank again, each the
    most that still fits.

    >>> small, large = Offer(0, (10, 50)), Offer(1, (20, 30))
    >>> chosen([small, large], 60)
    [0, 1]
    >>> chosen([small, large], 80)
    [1, 1]
    >>> chosen([small, large], 15)
    [0, None]
    """
    versions: list[int | None] = [None] * len(offers)
    order = sorted(range(len(offers)), key=lambda place: offers[place].rank)
    for place in order:
        sizes = offers[place].sizes
        if sizes and sizes[0] <= room:
            versions[place] = 0
            room -= sizes[0]
    for place in order:
        least = versions[place]
        if least is None:
            continue
        sizes = offers[place].sizes
        fitting = [at for at, size in enumerate(sizes) if size - sizes[0] <= room]
        versions[place] = max(fitting)
        room -= sizes[max(fitting)] - sizes[0]
    return versions


def packed(value: Any) -> str:
    """A JSON value, deflated (RFC 1950) and in base64."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return b64encode(zlib.compress(text.encode("ascii"), _LEVEL)).decode("ascii")


def inert(value: Any) -> str:
    """A JSON value as text in which no character means anything to HTML."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def packed_columns(
    columns: Mapping[str, Mapping[str, Any]], units: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """The columns of a `Page`, those that repeat themselves or another one in fewer words.

    >>> told = {"a": {"values": [1, 1]}, "start": {"values": [500, 600]}, "b": {"values": [1, 1]}}
    >>> packed_columns(told, {"start": "instant"})
    {'a': {'same': 1}, 'start': {'steps': [500, 100]}, 'b': {'same': 1}}
    """
    found: dict[str, dict[str, Any]] = {}
    for name, column in columns.items():
        found[name] = _packed(name, column, columns, found, units.get(name, "text"))
    return found


def _packed(
    name: str,
    column: Mapping[str, Any],
    columns: Mapping[str, Mapping[str, Any]],
    before: Mapping[str, Any],
    unit: str,
) -> dict[str, Any]:
    values = column.get("values")
    if not values:
        return dict(column)
    if values.count(values[0]) == len(values) and len({type(value) for value in values}) == 1:
        return {"same": values[0]}
    equal = [other for other in before if _is_equal(values, columns[other].get("values"))]
    if equal:
        return {"like": equal[0]}
    if unit in _STEPPED and _are_integers(values):
        return {"steps": [values[0], *(after - last for last, after in pairwise(values))]}
    other = _ALIKE.get(name)
    if other is not None and other in before:
        return _beside(values, other, columns[other]["values"])
    return dict(column)


def _is_equal(values: list[Any], others: list[Any] | None) -> bool:
    """Whether they are the same to JSON too, which tells 1 from 1.0 and from true."""
    return values == others and all(
        type(value) is type(other) for value, other in zip(values, others, strict=True)
    )


def _are_integers(values: list[Any]) -> bool:
    return all(type(value) is int for value in values)


def _beside(values: list[Any], other: str, others: list[Any]) -> dict[str, Any]:
    """Each value as what it has more than the other column's, where both are known."""
    pairs = list(zip(values, others, strict=True))
    if not all(value is None or (type(value) is int and type(o) is int) for value, o in pairs):
        return {"values": values}
    return {"beside": other, "more": [None if v is None else v - o for v, o in pairs]}
