"""What the pages of the reference are written with."""

from collections.abc import Sequence

__all__ = ["columns", "table"]

from selftime.schema import Column


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; a cell is one line, and a bar in it is no border."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def columns(declared: Sequence[Column]) -> str:
    """What columns are: name, unit, meaning, and whether they may be unknown."""
    rows = [[f"`{one.name}`", one.unit, one.doc, "yes" if one.nullable else ""] for one in declared]
    return table(["column", "unit", "is", "may be unknown"], rows)
