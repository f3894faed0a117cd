"""Tables as a terminal shows them."""

import polars as pl
import pytest
from rich.cells import cell_len

from selftime import units
from selftime.reports.tables.text_table import as_text
from selftime.schema import Column, NameType

COLUMNS = (
    Column("name", NameType, "name", "The name."),
    Column("self_time", pl.Int64, "ns", "How long.", nullable=True),
    Column("memory", pl.Int64, "bytes", "How much.", nullable=True),
)
SCHEMA = {column.name: column.dtype for column in COLUMNS}
UNKNOWN = units.value_text(None, "ns")
LONG = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"


def table(*rows: tuple[object, ...]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=SCHEMA, orient="row")


def drawn(*rows: tuple[object, ...], width: int = 80, most: int | None = None) -> str:
    return as_text(table(*rows), COLUMNS, width=width, rows=most)


def test_an_empty_table_says_so() -> None:
    assert drawn() == "      self_\nname   time  memory\nno rows\n"


def test_units_are_written_and_numbers_stand_right() -> None:
    assert drawn(("aten::add", 1_500_000, 2048), ("b", None, 1)) == (
        "             self_\n"
        "name          time    memory\n"
        "aten::add  1.50 ms  2.00 KiB\n"
        f"b{UNKNOWN:>17}       1 B\n"
    )


def test_a_column_that_tells_nothing_is_left_out() -> None:
    assert "memory" not in drawn(("a", 1, None))


def test_rows_beyond_the_limit_are_counted() -> None:
    page = drawn(*((f"op{i}", i, i) for i in range(5)), most=2)
    assert "op1" in page
    assert "op2" not in page
    assert "3 more rows" in page


@pytest.mark.parametrize("width", [20, 40, 60, 79])
def test_every_line_fits_and_no_number_is_cut(width: int) -> None:
    page = drawn((LONG, 123_456_789, 5 * 1024**3), ("日本" * 30, 1, 1), width=width)
    assert max(cell_len(line) for line in page.splitlines()) <= width
    if "memory" not in page.split("columns that do not")[0]:
        assert "columns that do not fit" in " ".join(page.split())
    else:
        assert "5.00 GiB" in page


def test_names_are_cut_in_the_middle() -> None:
    page = drawn((LONG, 1, 1), width=60)
    assert "void at::native" in page
    assert "_add<float>>" in page
    assert "…" in page


def test_names_cannot_act_on_the_terminal() -> None:
    page = drawn(("\x1b[2J[red]x[/red]\u202e\n", 1, 1))
    assert "[red]x[/red]\\u202e\\n" in page
    assert "\x1b" not in page


def test_colour_is_only_where_it_is_asked_for() -> None:
    rows = table(("a", 1, 1))
    assert "\x1b[1m" in as_text(rows, COLUMNS, width=80, colour=True)
    assert "\x1b" not in as_text(rows, COLUMNS, width=80)


def test_a_number_that_is_none_is_a_dash() -> None:
    share = (Column("share", pl.Float64, "ratio", "Of all."), *COLUMNS[:1])
    rows = pl.DataFrame({"share": [float("nan"), 0.5], "name": ["a", "b"]})
    assert as_text(rows, share, width=80).splitlines()[1].split() == [UNKNOWN, "a"]


def test_the_column_that_gives_the_order_is_never_left_out() -> None:
    columns = tuple(Column(f"much{n}", pl.Int64, "count", "Much.") for n in range(20))
    rows = pl.DataFrame({c.name: [1, 3, 2] for c in columns}).with_columns(
        much17=pl.Series([9, 5, 1])
    )
    shown = as_text(rows, columns, width=40).split("columns that do not fit")
    assert "much0" in shown[0]
    assert "much17" in shown[0]
    assert "more (choose" in " ".join(shown[1].split())
    assert "much17" not in shown[1]


def test_a_sentence_is_folded_and_not_cut() -> None:
    columns = (
        Column("note", pl.String, "sentence", "Why."),
        Column("n", pl.Int64, "count", "How."),
    )
    words = "a sentence that does not fit the width of the table"
    page = as_text(pl.DataFrame({"note": [words], "n": [7]}), columns, width=30)
    assert " ".join(line.removesuffix("7").strip() for line in page.splitlines()[1:]) == words


def test_a_value_has_the_form_of_its_rows_unit() -> None:
    columns = (
        Column("key", pl.String, "name", "What."),
        Column("value", pl.String, "text", "The value."),
        Column("unit", pl.String, "name", "The unit of the value."),
        Column("duration", pl.Int64, "ns", "How long.", nullable=True),
    )
    rows = [
        ("duration", "77074", "ns", 77_074),
        ("size", "2048", "bytes", None),
        ("name", "77074", "name", None),
    ]
    facts = pl.DataFrame(rows, schema={c.name: c.dtype for c in columns}, orient="row")
    head, duration, size, name, *_ = as_text(facts, columns, width=80).splitlines()
    assert head.split() == ["key", "value", "duration"]
    assert duration.split() == ["duration", "77.1", "µs", "77.1", "µs"]
    assert size.split() == ["size", "2.00", "KiB", UNKNOWN]
    assert name.split() == ["name", "77074", UNKNOWN]
