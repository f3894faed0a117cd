import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from selftime.errors import UsageError
from selftime.reports.page_data.table_queries import (
    MAX_RESPONSE_BYTES,
    ColumnFilter,
    PreparedTable,
    RowQuery,
    prepare_table,
)
from selftime.schema import Column

COLUMNS = (
    Column("name", pl.Categorical(), "name", "A name.", True),
    Column("time", pl.Int64, "ns", "A duration.", True),
    Column("share", pl.Float64, "ratio", "A share.", True),
    Column("on", pl.Boolean, "flag", "Whether.", True),
    Column("address", pl.UInt64, "id", "Where.", True),
)
ROWS: list[tuple[Any, ...]] = [
    ("mm", 3, 0.5, True, 7),
    ("Add", 1, float("nan"), False, 1 << 60),
    (None, None, None, None, None),
    ("mm", 2, float("inf"), True, 8),
    ("", 0, 0.25, False, 9),
]
TABLE = pl.DataFrame(ROWS, schema={c.name: c.dtype for c in COLUMNS}, orient="row")


def ready(table: pl.DataFrame = TABLE) -> PreparedTable:
    columns = tuple(column for column in COLUMNS if column.name in table.columns)
    return prepare_table(table, columns, sums=("time",) if "time" in table.columns else ())


def ask(table: pl.DataFrame = TABLE, **query: Any) -> dict[str, Any]:
    told = ready(table).page_json(
        RowQuery(**query), view="v", options={"b": 1, "a": None}, missing_data=["x"]
    )
    page = json.loads(told)
    assert isinstance(page, dict)
    return page


def values(page: dict[str, Any], name: str) -> list[Any]:
    column = page["columns"][name]
    if "values" in column:
        return list(column["values"])
    return [None if code is None else column["texts"][code] for code in column["codes"]]


def names(**query: Any) -> list[Any]:
    return values(ask(**query), "name")


def where(column: str, op: Any, value: str) -> dict[str, Any]:
    return {"where": (ColumnFilter(column, op, value),)}


def test_an_empty_table_is_a_page() -> None:
    page = ask(TABLE.clear(), sort="-time", find="x")
    assert (page["all"], page["total"], page["from"], page["rows"]) == (0, 0, 0, 0)
    assert page["columns"]["name"] == {"codes": [], "texts": []}
    assert page["totals"] == {"time": None}


def test_a_page_is_the_table() -> None:
    page = ask()
    assert page["view"] == "v"
    assert page["options"] == {"a": None, "b": 1}
    assert page["lacks"] == ["x"]
    assert (page["all"], page["total"], page["from"], page["rows"]) == (5, 5, 0, 5)
    assert values(page, "name") == ["mm", "Add", None, "mm", ""]
    assert values(page, "time") == [3, 1, None, 2, 0]
    assert values(page, "share") == [0.5, None, None, None, 0.25]
    assert values(page, "on") == [True, False, None, True, False]
    assert page["totals"] == {"time": 6}


def test_texts_are_told_once() -> None:
    assert ask()["columns"]["name"] == {"codes": [0, 1, None, 0, 2], "texts": ["mm", "Add", ""]}


def test_only_integers_that_javascript_cannot_hold_are_texts() -> None:
    assert values(ask(), "address") == [7, str(1 << 60), None, 8, 9]
    exact = pl.DataFrame({"time": [1 << 53, -(1 << 53)]})
    assert values(ask(exact), "time") == [1 << 53, -(1 << 53)]
    beyond = pl.DataFrame({"time": [(1 << 53) + 1]})
    assert values(ask(beyond), "time") == [str((1 << 53) + 1)]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("time", ["", "Add", "mm", "mm", None]),
        ("-time", ["mm", "mm", "Add", "", None]),
        ("name", ["", "Add", "mm", "mm", None]),
        ("-name", ["mm", "mm", "Add", "", None]),
        ("share", ["", "mm", "Add", None, "mm"]),
    ],
)
def test_unknown_values_are_last_whichever_the_order(sort: str, order: list[Any]) -> None:
    assert names(sort=sort) == order


def test_equal_rows_keep_the_order_of_the_view() -> None:
    assert values(ask(sort="name"), "time")[2:4] == [3, 2]
    assert values(ask(sort="-name"), "time")[:2] == [3, 2]


def test_search_is_in_every_text_without_case() -> None:
    assert names(find="M") == ["mm", "mm"]
    assert names(find="aDD") == ["Add"]
    assert names(find="3") == []
    assert names(find="m.") == []


@pytest.mark.parametrize(
    ("condition", "times"),
    [
        (where("name", "is", "MM"), [3, 2]),
        (where("name", "is", "m"), []),
        (where("name", "has", "d"), [1]),
        (where("name", "is", ""), [None, 0]),
        (where("time", "is", ""), [None]),
        (where("time", "is", "2"), [2]),
        (where("time", "from", "1.5"), [3, 2]),
        (where("time", "to", "1"), [1, 0]),
        (where("time", "has", "3"), [3]),
        (where("share", "from", "0.5"), [3]),
        (where("on", "is", "true"), [3, 2]),
        (where("on", "is", "False"), [1, 0]),
        (where("on", "is", "1"), [3, 2]),
        (where("address", "is", str(1 << 60)), [1]),
        (where("address", "is", str((1 << 60) + 1)), []),
    ],
)
def test_filters(condition: dict[str, Any], times: list[Any]) -> None:
    page = ask(**condition)
    assert values(page, "time") == times
    assert page["total"] == len(times)
    assert page["all"] == 5


def test_filters_and_search_all_hold() -> None:
    both = (ColumnFilter("name", "is", "mm"), ColumnFilter("time", "to", "2"))
    assert values(ask(where=both, find="m"), "time") == [2]
    assert ask(where=both, find="m")["totals"] == {"time": 2}


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"sort": "nonesuch"}, "no column `nonesuch`; there are name, time"),
        (where("nonesuch", "is", ""), "no column `nonesuch`"),
        (where("name", "from", "a"), "`name` is a text"),
        (where("time", "from", "x"), "write a number"),
        (where("time", "from", "nan"), "write a number"),
        (where("time", "to", "1e999"), "write a number"),
        (where("on", "from", "1"), "`true` and `false`"),
    ],
)
def test_what_cannot_be_asked_is_told(query: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        ask(**query)


def test_a_window_is_a_part_of_the_sorted_rows() -> None:
    page = ask(sort="time", start=1, rows=2)
    assert (page["from"], page["rows"], page["total"]) == (1, 2, 5)
    assert values(page, "time") == [1, 2]
    assert page["totals"] == {"time": 6}


@pytest.mark.parametrize("start", [5, 6, 1 << 70])
def test_a_window_beyond_the_end_is_empty(start: int) -> None:
    page = ask(start=start, rows=1 << 70)
    assert (page["from"], page["rows"]) == (5, 0)


def test_only_the_columns_asked_for_are_told_in_that_order() -> None:
    page = ask(columns=("share", "name"), sort="-time", find="m", rows=1)
    assert list(page["columns"]) == ["share", "name"]
    assert values(page, "name") == ["mm"]
    assert page["totals"] == {"time": 5}
    with pytest.raises(UsageError, match="no column `nonesuch`"):
        ask(columns=("nonesuch",))


def test_no_rows_can_be_asked_for() -> None:
    assert ask(rows=0)["rows"] == 0


def test_an_answer_is_cut_where_it_would_be_too_large() -> None:
    texts = [f"{number:06}{'x' * 994}" for number in range(20_000)]
    told = ready(pl.DataFrame({"name": texts}, schema={"name": pl.Categorical()}))
    answer = told.page_json(RowQuery(), view="v", options={})
    page = json.loads(answer)
    assert len(answer) < MAX_RESPONSE_BYTES
    assert page["total"] == 20_000
    assert page["rows"] > MAX_RESPONSE_BYTES // 1000 * 0.7
    assert values(page, "name") == texts[: page["rows"]]


def test_an_answer_is_cut_where_only_later_rows_are_large() -> None:
    texts = ["a"] * 300 + [f"{number:06}{'x' * 9994}" for number in range(5_000)]
    told = ready(pl.DataFrame({"name": texts}, schema={"name": pl.Categorical()}))
    answer = told.page_json(RowQuery(), view="v", options={})
    page = json.loads(answer)
    assert len(answer) < MAX_RESPONSE_BYTES
    assert values(page, "name") == texts[: page["rows"]]
    assert page["rows"] > 300


def test_the_largest_row_fits_an_answer() -> None:
    columns = [Column(f"c{number}", pl.String, "text", "Text.") for number in range(40)]
    table = pl.DataFrame({column.name: ["\x01" * 500_000] for column in columns})
    answer = prepare_table(table, columns).page_json(RowQuery(), view="v", options={})
    assert len(answer) < MAX_RESPONSE_BYTES
    page = json.loads(answer)
    assert page["rows"] == 1
    assert page["columns"]["c0"]["texts"][0].endswith("more characters)")


def test_small_rows_are_not_cut() -> None:
    told = ready(pl.DataFrame({"time": range(300_000)}))
    page = json.loads(told.page_json(RowQuery(), view="v", options={}))
    assert values(page, "time") == list(range(300_000))


def test_nested_values_are_json_text() -> None:
    columns = [
        Column("grid", pl.Array(pl.Int32, 3), "count", "Blocks.", True),
        Column("ids", pl.List(pl.Int64), "id", "Slices.", True),
    ]
    table = pl.DataFrame(
        {"grid": [[1, 2, 3], None], "ids": [[], [4]]}, schema={c.name: c.dtype for c in columns}
    )
    page = json.loads(prepare_table(table, columns).page_json(RowQuery(), view="v", options={}))
    assert values(page, "grid") == ["[1, 2, 3]", None]
    assert values(page, "ids") == ["[]", "[4]"]


def test_sums_beyond_what_a_number_holds_are_rounded() -> None:
    page = ask(pl.DataFrame({"time": [(1 << 63) - 1] * 4}))
    assert page["totals"]["time"] == float((1 << 65) - 4)


def test_a_sum_of_nothing_known_is_unknown() -> None:
    assert ask(**where("time", "is", ""))["totals"] == {"time": None}


GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "page_queries.json").read_text("utf-8"))
"""What the page of a report is held to as well."""

DTYPES: dict[str, Any] = {"name": pl.Categorical(), "text": pl.String, "flag": pl.Boolean}


def golden() -> PreparedTable:
    columns = []
    for told in GOLDEN["columns"]:
        whole = all(isinstance(value, int | None) for value in told["values"])
        dtype = DTYPES.get(told["unit"], pl.Int64 if whole else pl.Float64)
        columns.append(Column(told["name"], dtype, told["unit"], "A column.", True))
    cells = {told["name"]: told["values"] for told in GOLDEN["columns"]}
    table = pl.DataFrame(cells, schema={c.name: c.dtype for c in columns})
    return prepare_table(table, columns, sums=tuple(GOLDEN["summed"]))


def read(query: dict[str, Any]) -> RowQuery:
    return RowQuery(
        sort=query.get("sort", ""),
        find=query.get("find", ""),
        where=tuple(ColumnFilter(**one) for one in query.get("where", ())),
        start=query.get("from", 0),
        rows=query.get("rows"),
    )


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["title"])
def test_a_query_is_answered_as_in_a_report(case: dict[str, Any]) -> None:
    table, query = golden(), read(case["query"])
    page = json.loads(table.page_json(query, view="v", options={}))
    rows = table.matching_rows(query).to_list()
    assert rows[page["from"] :][: page["rows"]] == case["rows"]
    assert page["total"] == case["total"]
    assert page["totals"] == pytest.approx(case["totals"])


@pytest.mark.parametrize("case", GOLDEN["refused"], ids=lambda case: case["title"])
def test_a_query_is_refused_as_in_a_report(case: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        golden().page_json(read(case["query"]), view="v", options={})
