"""A view's table as the page asks for it: searched, filtered, sorted, and one window of its rows.

The JSON form is `Page` of `frontend/src/api.ts` (docs/formats.md). Numbers that JavaScript cannot
hold exactly are texts, numbers that are none are null, and texts are told once and then by number.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
import polars as pl

from selftime.errors import UsageError
from selftime.reports.tables.tabular import known
from selftime.schema import Column

LIMIT: Final = 5_000_000
"""Bytes that an answer stays below: rows that do not fit are left for the next question."""

Op: TypeAlias = Literal["is", "has", "from", "to"]

OPS: Final[tuple[str, ...]] = get_args(Op)

_FLAGS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_LONGEST_TEXT: Final = 1 << 14
"""Characters of a text that are told; one row of the longest such texts fits an answer."""
_EXACT: Final = 1 << 53
"""Beyond this JavaScript's numbers skip integers."""
_LEAST_CELL: Final = len("0,")
_MOST_ROWS: Final = 1 << 62
_SAMPLE: Final = 256
"""Rows that are written to see how large a row is."""


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition on a column; texts are compared without case."""

    column: str
    op: Op
    value: str


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows of a table are asked for, and in which order."""

    sort: str = ""
    """The column, with `-` before it for descending; empty for the view's own order."""
    find: str = ""
    """What some text of the row must contain."""
    where: tuple[Filter, ...] = ()
    start: int = 0
    rows: int | None = None
    """At most so many; as many as an answer holds if not told."""
    columns: tuple[str, ...] = ()
    """Only these are told; all if there are none."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A table whose texts are numbers in alphabetical order, so that questions are cheap."""

    table: pl.DataFrame
    """As the view gave it."""
    columns: tuple[Column, ...]
    cells: pl.DataFrame
    """The same with a number for each text."""
    texts: Mapping[str, pl.Series] = field(default_factory=dict)
    """The texts of a column, by its name; sorted."""
    sums: tuple[str, ...] = ()
    """Columns whose sum means something."""

    def matching(self, query: Query) -> pl.Series:
        """The numbers of the rows that match, in the order asked for."""
        conditions = [self._condition(one) for one in query.where]
        if query.find:
            conditions.append(self._holding(query.find))
        rows = self.cells.with_row_index("\0row")
        if query.sort:
            name = query.sort.removeprefix("-")
            self._declared(name)
            order = rows.lazy().filter(*conditions).select("\0row", name)
            descending = query.sort.startswith("-")
            order = order.sort(name, descending=descending, nulls_last=True, maintain_order=True)
            return order.select("\0row").collect()["\0row"]
        return rows.lazy().filter(*conditions).select("\0row").collect()["\0row"]

    def chosen(self, query: Query) -> list[str]:
        """The columns that are asked for, all if none is named."""
        for name in query.columns:
            self._declared(name)
        return list(query.columns or self.cells.columns)

    def answer(
        self,
        query: Query,
        *,
        view: str,
        options: Mapping[str, Any],
        lacks: Sequence[str] = (),
        limit: int = LIMIT,
    ) -> bytes:
        """The `Page` as JSON, in fewer bytes than `limit`."""
        cells = self.cells.select(self.chosen(query))
        rows = self.matching(query)
        head = {
            "view": view,
            "options": dict(sorted(options.items())),
            "all": self.table.height,
            "total": len(rows),
            "totals": self.totals(rows),
            "lacks": list(lacks),
        }
        start = min(max(query.start, 0), len(rows))
        asked = len(rows) if query.rows is None else min(max(query.rows, 0), _MOST_ROWS)
        window = rows.slice(start, _fitting(asked, cells.width, limit))
        sample = self._written(head, start, cells[window.head(_SAMPLE)])
        if len(window) <= _SAMPLE and len(sample) < limit:
            return sample
        count = _within(len(window), len(sample) / min(len(window), _SAMPLE), limit)
        while True:
            written = self._written(head, start, cells[window.head(count)])
            if len(written) < limit or count <= 1:
                return written
            count = max(1, min(count - 1, _within(count, len(written) / count, limit)))

    def totals(self, rows: pl.Series) -> dict[str, int | float | None]:
        """Sums over these rows of the columns whose sum means something."""
        chosen = self.cells.select(self.sums)
        if len(rows) < chosen.height:
            chosen = chosen[rows]
        return {name: _sum(chosen[name]) for name in self.sums}

    def _written(self, head: Mapping[str, Any], start: int, cells: pl.DataFrame) -> bytes:
        columns = {name: self._values(cells[name]) for name in cells.columns}
        return msgspec.json.encode(
            {**head, "from": start, "rows": cells.height, "columns": columns}
        )

    def _values(self, column: pl.Series) -> dict[str, Any]:
        texts = self.texts.get(column.name)
        if texts is None:
            return {"values": _numbers(column)}
        codes = column.to_list()
        told = [code for code in dict.fromkeys(codes) if code is not None]
        places: dict[int | None, int | None] = {code: place for place, code in enumerate(told)}
        places[None] = None
        return {
            "codes": [places[code] for code in codes],
            "texts": [_shortened(text) for text in texts[told]],
        }

    def _declared(self, name: str) -> None:
        if name not in self.cells.columns:
            known_names = ", ".join(self.cells.columns)
            raise UsageError(f"there is no column `{name}`; there are {known_names}")

    def _condition(self, one: Filter) -> pl.Expr:
        self._declared(one.column)
        column = pl.col(one.column)
        texts = self.texts.get(one.column)
        if one.op == "is" and one.value == "":
            empty = [] if texts is None else _codes(texts == "")
            return column.is_null() | column.is_in(empty)
        if texts is not None:
            return column.is_in(_codes(_agreeing(texts, one)))
        if self.cells.schema[one.column] == pl.Boolean:
            return column == _flag(one)
        return _compared(column, one)

    def _holding(self, find: str) -> pl.Expr:
        word = find.lower()
        held = [
            pl.col(name).is_in(_codes(texts.str.to_lowercase().str.contains(word, literal=True)))
            for name, texts in self.texts.items()
        ]
        return pl.any_horizontal(pl.lit(value=False), *held)


def prepare(
    table: pl.DataFrame, columns: Sequence[Column], *, sums: tuple[str, ...] = ()
) -> Prepared:
    """A view's table ready for questions, with the view's columns and `sums`."""
    told = known(table.select(column.name for column in columns))
    written = [_as_text(column) for column in told if _is_text(column.dtype)]
    texts = _alphabets(pl.DataFrame(written))
    cells = told.with_columns(_coded(column, texts[column.name]) for column in written)
    return Prepared(table, tuple(columns), cells, texts, sums)


def _is_text(dtype: pl.DataType) -> bool:
    return not (dtype.is_numeric() or dtype == pl.Boolean)


def _as_text(column: pl.Series) -> pl.Series:
    if not column.dtype.is_nested():
        return column.cast(pl.String)
    written = [None if v is None else json.dumps(_plain(v), default=str) for v in column.to_list()]
    return pl.Series(column.name, written, dtype=pl.String)


def _plain(value: Any) -> Any:
    return value.to_list() if isinstance(value, pl.Series) else value


def _alphabets(written: pl.DataFrame) -> dict[str, pl.Series]:
    """The texts of each column, sorted; asked for at once, as each question takes half a ms."""
    if not written.width:
        return {}
    [texts] = written.select(pl.all().drop_nulls().unique().sort().implode()).iter_rows(named=True)
    return {name: pl.Series(name, told, dtype=pl.String) for name, told in texts.items()}


def _coded(column: pl.Series, texts: pl.Series) -> pl.Series:
    """Numbers of texts: smaller numbers are earlier in the alphabet."""
    return column.cast(pl.Enum(texts)).to_physical().cast(pl.UInt32)


def _codes(held: pl.Series) -> list[int]:
    return held.arg_true().to_list()


def _agreeing(texts: pl.Series, one: Filter) -> pl.Series:
    lower, value = texts.str.to_lowercase(), one.value.lower()
    match one.op:
        case "is":
            return lower == value
        case "has":
            return lower.str.contains(value, literal=True)
    raise UsageError(f"`{one.column}` is a text; ask for what it `is` or `has`, not `{one.op}`")


def _compared(column: pl.Expr, one: Filter) -> pl.Expr:
    match one.op:
        case "has":
            return column.cast(pl.String).str.contains(one.value.lower(), literal=True)
        case "from":
            return column >= _number(one)
        case "to":
            return column <= _number(one)
    return column == _number(one)


def _flag(one: Filter) -> bool:
    if one.op != "is" or one.value.lower() not in _FLAGS:
        raise UsageError(f"`{one.column}` is `true` or `false`; ask whether it `is` one of them")
    return _FLAGS[one.value.lower()]


def _number(one: Filter) -> int | float:
    """The number that a filter tells; an integer stays one, since floats skip some."""
    for kind in (int, float):
        try:
            value = kind(one.value)
        except ValueError:
            continue
        if abs(value) <= _MOST_ROWS:  # false for NaN
            return value
    raise UsageError(f"`{one.column}` is compared with `{one.value[:40]}`; write a number")


def _numbers(column: pl.Series) -> list[Any]:
    values = column.to_list()
    if not column.dtype.is_integer():
        return values
    least, most = column.min(), column.max()
    if least is None or (least >= -_EXACT and most <= _EXACT):  # type: ignore[operator]  # integers
        return values
    return [v if v is None or -_EXACT <= v <= _EXACT else str(v) for v in values]


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}… ({len(text) - _LONGEST_TEXT:,} more characters)"


def _sum(column: pl.Series) -> int | float | None:
    """The sum, null if nothing is known; beyond what JavaScript holds it is rounded."""
    if column.null_count() == len(column):
        return None
    if not column.dtype.is_integer():
        return float(column.sum())
    total = int(column.cast(pl.Int128).sum())
    return total if abs(total) <= _EXACT else float(total)


def _fitting(asked: int, columns: int, limit: int) -> int:
    """At most so many rows can fit an answer, however small their cells."""
    return min(asked, limit // (_LEAST_CELL * max(1, columns)))


def _within(rows: int, size: float, limit: int) -> int:
    """How many rows of that mean size surely fit, with room for their being uneven."""
    return max(1, min(rows, int(0.9 * limit / max(size, 1))))
