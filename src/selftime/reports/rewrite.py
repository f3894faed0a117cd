"""What was done to a trace that was written anew, as JSON and as lines for people."""

import json
from collections.abc import Iterable
from typing import Any, Protocol

from selftime.units import count_text


class _Fault(Protocol):
    """One thing that was wrong with a file."""

    @property
    def fault(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def example(self) -> str | None: ...
    @property
    def note(self) -> bool: ...


def as_json(kind: str, **told: Any) -> str:
    """One of the reports `selftime.<kind>/1`."""
    return json.dumps({"format": f"selftime.{kind}/1", **told}, indent=1) + "\n"


def mended(faults: Iterable[_Fault]) -> list[dict[str, Any]]:
    """Equal faults as one: how often, where first, how many events they cost, one of them."""
    rows: dict[str, dict[str, Any]] = {}
    for one in faults:
        row = rows.setdefault(
            one.fault,
            {"fault": one.fault, "count": 0, "offset": None, "lost": 0, "example": one.example},
        )
        row["count"] += 1
        row["lost"] += one.lost
        if one.offset >= 0:
            first = row["offset"]
            row["offset"] = one.offset if first is None else min(first, one.offset)
    return list(rows.values())


def mended_lines(rows: Iterable[dict[str, Any]]) -> list[str]:
    """A line for each kind of fault."""
    return [_line(row) for row in rows]


def _line(row: dict[str, Any]) -> str:
    where = "" if row["offset"] is None else f", first at byte {row['offset']:,}"
    lost = f", {count_text(row['lost'])} lost" if row["lost"] else ""
    return f"{count_text(row['count'])} x {row['fault']}{where}{lost}"
