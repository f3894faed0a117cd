"""A measured table: its rows, what their columns mean, and when and on what it was measured."""

import argparse
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

from machine import described

__all__ = ["FOLDER", "Column", "add_format", "keep", "kept", "markdown", "show", "table", "written"]

FORMAT: Final = "selftime.benchmark/1"
FOLDER: Final = Path(__file__).with_name("results")

Table = dict[str, Any]


class Column(NamedTuple):
    """A column of a table: the rows' key, its title, its unit as `written` knows it."""

    key: str
    title: str
    unit: str = "text"


def table(
    part: str,
    key: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any] | None = None,
) -> Table:
    """A table that was measured just now; its ratios hold within it alone."""
    return {
        "format": FORMAT,
        "part": part,
        "key": key,
        "title": title,
        "about": dict(about or {}),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": described(),
        "columns": [column._asdict() for column in columns],
        "rows": [dict(row) for row in rows],
    }


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")


def show(tables: Sequence[Table], how: str) -> None:
    """Print tables, as text or as one line of JSON."""
    if how == "json":
        print(json.dumps({"format": FORMAT, "tables": tables}))
        return
    for one in tables:
        print(f"\n{one['title']}\n\n{markdown(one)}")


def keep(found: Table, folder: Path = FOLDER) -> Path:
    """Write a table where the page is made from; the one before of the same key goes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found['part']}-{found['key']}.json"
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def kept(folder: Path = FOLDER) -> list[Table]:
    """The tables that were kept, by part and key."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]


def markdown(found: Table) -> str:
    """The rows as a Markdown table; columns that say nothing in any row are left out."""
    columns = [
        Column(**one)
        for one in found["columns"]
        if any(row.get(one["key"]) not in (None, "") for row in found["rows"])
    ]
    lines = [
        "| " + " | ".join(column.title for column in columns) + " |",
        "|" + "|".join("---" if column.unit == "text" else "---:" for column in columns) + "|",
    ]
    for row in found["rows"]:
        cells = (written(row.get(column.key), column.unit) for column in columns)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def written(value: Any, unit: str) -> str:
    """A figure for people; nothing for what was not measured."""
    if value is None or unit == "text":
        return "" if value is None else str(value).replace("|", "\\|")
    if unit == "count":
        return f"{value:,}"
    if not isfinite(value):
        return "-"
    if unit == "bytes":
        return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"
    if unit == "s" and value < SHORT_S:
        return f"{_digits(value * 1e3)} ms"
    return f"{_digits(value)}{UNITS[unit]}"


SHORT_S: Final = 0.01
"""Less is written in milliseconds."""
UNITS: Final = {"s": " s", "ms": " ms", "x": " x", "%": " %", "ms/MB": ""}


def _digits(value: float) -> str:
    """Three digits that count."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
