"""Any view's table as a terminal shows it: units written out, every number whole.

A number is never cut, and a sentence is folded. Columns that are unknown or zero throughout are
left out. Where the width does not hold the others, names are cut in the middle, then the last
columns are left out and named below the table, but never the one that gives the order.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from selftime import units
from selftime.reports.plain import cut_middle, plain
from selftime.reports.tables.tabular import known
from selftime.reports.terminal import sheet
from selftime.schema import Column

_MOST_NAMES: Final = 6
"""Columns that a note names."""

_GAP: Final = 2
"""Blanks between two columns."""
_NAME_WIDTH: Final = 22
"""Names are not cut below this while a column can be left out instead."""


@dataclass(frozen=True, slots=True)
class _Strip:
    """One column ready to print: its cells as text, and how wide they are."""

    name: str
    cells: tuple[str, ...]
    is_number: bool
    folds: bool
    """Whether it is prose, which is folded where a name would be cut."""

    @property
    def heading(self) -> str:
        """The name; on two lines where its cells are narrower, folded at an underscore."""
        widest = max((cell_len(cell) for cell in self.cells), default=0)
        words = self.name.split("_")
        if cell_len(self.name) <= widest or len(words) == 1:
            return self.name
        folds = (("_".join(words[:n]) + "_", "_".join(words[n:])) for n in range(1, len(words)))
        return "\n".join(min(folds, key=lambda lines: max(map(cell_len, lines))))

    @property
    def natural(self) -> int:
        return max(cell_len(text) for text in (*self.heading.split("\n"), *self.cells))

    @property
    def least(self) -> int:
        return self.natural if self.is_number else min(self.natural, _NAME_WIDTH)


def as_text(  # noqa: PLR0913 - all by name
    table: pl.DataFrame,
    columns: tuple[Column, ...],
    *,
    width: int,
    rows: int | None = None,
    colour: bool = False,
    root: str | None = None,
    choose: str = "choose with `--columns`",
) -> str:
    """The first `rows` of the table (all of them if None), and a line on what is not shown.

    Files below `root` are named as seen from there. `choose` says what to do about columns for
    which there is no room.
    """
    table = _seen_from(known(table), root)
    shown = table if rows is None else table.head(rows)
    zero = [c.name for c in columns if _is_zero(table[c.name], c)]
    telling = [c for c in columns if c.name not in zero and _tells(table[c.name])]
    strips = [_strip(shown[c.name], c) for c in telling]
    fitting = _fitting(strips, width, _order(table, columns))
    drawn = _drawn(fitting, _widths(fitting, width))
    left_out = [strip.name for strip in strips if strip not in fitting]
    notes = _notes(table.height - shown.height, zero, left_out, choose)
    if not table.height:
        notes = ["no rows"]
    return sheet(drawn, *(Text(note, style="dim") for note in notes), width=width, colour=colour)


def _seen_from(table: pl.DataFrame, root: str | None) -> pl.DataFrame:
    if root is None or "file" not in table.columns:
        return table
    return table.with_columns(pl.col("file").cast(pl.String).str.strip_prefix(f"{root}/"))


def _is_quantity(column: Column) -> bool:
    return column.unit not in ("name", "text", "sentence", "id", "flag", "instant")


def _is_zero(values: pl.Series, column: Column) -> bool:
    """Whether a quantity is 0 in every row: what did not happen takes no room."""
    known_values = values.drop_nulls()
    return _is_quantity(column) and known_values.len() > 0 and bool((known_values == 0).all())


def _tells(column: pl.Series) -> bool:
    return column.is_empty() or column.null_count() < column.len()


def _strip(values: pl.Series, column: Column) -> _Strip:
    cells = tuple(plain(units.text(value, column.unit)) for value in values.to_list())
    is_number = column.unit not in ("name", "text", "sentence")
    return _Strip(plain(column.name), cells, is_number, column.unit == "sentence")


def _order(table: pl.DataFrame, columns: tuple[Column, ...]) -> str | None:
    """The quantity by which the rows stand in order, the largest first, if one is seen to."""
    for column in columns:
        values = table[column.name].drop_nulls()
        if _is_quantity(column) and values.n_unique() > 1 and values.is_sorted(descending=True):
            return column.name
    return None


def _fitting(strips: list[_Strip], width: int, order: str | None) -> list[_Strip]:
    """As many of the first columns as the width holds, at least one, and the one of the order."""
    needed = [strip for strip in strips[1:] if strip.name == order]
    left = width - sum(_GAP + strip.least for strip in needed)
    fitting = strips[:1]
    for strip in strips[1:]:
        if strip.name != order:
            if sum(_GAP + s.least for s in fitting) + strip.least > left:
                break
            fitting = [*fitting, strip]
    return [strip for strip in strips if strip in fitting or strip in needed]


def _widths(strips: list[_Strip], width: int) -> list[int]:
    """Numbers as wide as they are; names share what is left, none wider than it needs."""
    left = width - _GAP * (len(strips) - 1) - sum(s.natural for s in strips if s.is_number)
    names = sorted((s for s in strips if not s.is_number), key=lambda s: s.natural)
    given: dict[str, int] = {}
    for index, strip in enumerate(names):
        given[strip.name] = max(1, min(strip.natural, left // (len(names) - index)))
        left -= given[strip.name]
    return [given.get(strip.name, strip.natural) for strip in strips]


def _drawn(strips: list[_Strip], widths: list[int]) -> Table:
    drawn = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for strip, size in zip(strips, widths, strict=True):
        heading = "\n".join(cut_middle(line, size) for line in strip.heading.split("\n"))
        drawn.add_column(
            Text(heading),
            width=size,
            justify="right" if strip.is_number else "left",
            vertical="top",
            no_wrap=not strip.folds,
            overflow="fold" if strip.folds else "crop",
        )
    cut = [
        s.cells if s.folds else [cut_middle(c, size) for c in s.cells]
        for s, size in zip(strips, widths, strict=True)
    ]
    for row in zip(*cut, strict=True):
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def _notes(more_rows: int, zero: list[str], left_out: list[str], choose: str) -> list[str]:
    notes = []
    if zero:
        notes.append(f"zero throughout: {_listed(zero)}")
    if more_rows:
        notes.append(f"{more_rows:,} more rows: `--rows 0` shows all")
    if left_out:
        notes.append(f"no room for {_listed(left_out)}: {choose}")
    return notes


def _listed(names: list[str]) -> str:
    """The first few of the names, and how many more there are."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
