"""Writes as JSON or text what the commands `repair`, `cut`, `redact` and `export` did."""

import json
from collections.abc import Iterable
from typing import Any, Protocol

from selftime.units import count_text


class _FileFault(Protocol):
    """A fault in a trace file: kind, position in bytes, number of events lost, and example text."""

    @property
    def fault(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def example(self) -> str | None: ...
    @property
    def is_note(self) -> bool: ...


def as_json(json_kind: str, **fields: Any) -> str:
    """Returns the given fields as JSON of the format `selftime.<json_kind>/1`."""
    return json.dumps({"format": f"selftime.{json_kind}/1", **fields}, indent=1) + "\n"


def fault_rows(faults: Iterable[_FileFault]) -> list[dict[str, Any]]:
    """Returns a row per kind of fault: how often, first position in bytes, lost events, example."""
    rows: dict[str, dict[str, Any]] = {}
    for fault in faults:
        row = rows.setdefault(
            fault.fault,
            {"fault": fault.fault, "count": 0, "offset": None, "lost": 0, "example": fault.example},
        )
        row["count"] += 1
        row["lost"] += fault.lost
        if fault.offset >= 0:
            first_offset = row["offset"]
            row["offset"] = (
                fault.offset if first_offset is None else min(first_offset, fault.offset)
            )
    return list(rows.values())


def fault_lines(fault_table_rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns one line of text for each kind of fault, from the rows that `fault_rows` returns."""
    return [_fault_line(row) for row in fault_table_rows]


def _fault_line(fault_table_row: dict[str, Any]) -> str:
    """Returns a kind of fault as text: its count, first offset in bytes, and lost events."""
    offset = (
        ""
        if fault_table_row["offset"] is None
        else f", first at byte {fault_table_row['offset']:,}"
    )
    lost = f", {count_text(fault_table_row['lost'])} lost" if fault_table_row["lost"] else ""
    return f"{count_text(fault_table_row['count'])} x {fault_table_row['fault']}{offset}{lost}"
