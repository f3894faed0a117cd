"""Results of queries as tracks of the timeline: listed, drawn at a resolution, and refused."""

from typing import Any

import pytest
from tests.web.conftest import Write, operator
from werkzeug.test import Client

from selftime.web import PageApp, TracesAtPaths
from selftime.web import sql_answers as answers

US = 1_000
MANY = [operator(f"aten::op_{at % 3}", 10.0 * at, 5) for at in range(400)]
SLICES = "-- the operators\nselect id, start, duration, name, category from slices"


@pytest.fixture
def many(write: Write) -> Client:
    return Client(PageApp(TracesAtPaths([str(write(events=MANY))])))


def ask(client: Client, query: str, **options: Any) -> Any:
    listed: Any = client.get("/api/traces").json
    trace = listed["traces"][0]["id"]
    answer = client.get("/api/sql_track", query_string={".trace": trace, "query": query, **options})
    assert answer.status_code == 200
    return answer.json


def rows(page: Any, *names: str) -> list[tuple[Any, ...]]:
    columns = []
    for name in names:
        values = page["columns"][name]
        texts = values.get("texts")
        codes = values["values"] if texts is None else values["codes"]
        columns.append([None if at is None else texts[at] if texts else at for at in codes])
    return list(zip(*columns, strict=True))


def test_rows_with_a_duration_are_slices(many: Client) -> None:
    listed = ask(many, SLICES, what="tracks")
    names = ("kind", "track", "category", "name", "start", "duration", "rows", "count", "note")
    assert rows(listed, *names) == [
        ("track", 0, "query", "the operators", 0, 3_995 * US, 1, 400, None)
    ]
    page = ask(many, SLICES, start=0, end=30 * US, pixels=30)
    assert rows(page, "kind", "row", "start", "duration", "name", "category", "id") == [
        ("slice", 0, 10 * at * US, 5 * US, f"aten::op_{at}", "cpu_op", at) for at in range(3)
    ]


def test_a_large_result_is_no_more_than_two_slices_for_each_pixel(many: Client) -> None:
    page = ask(many, SLICES, start=0, end=4_000 * US, pixels=8)

    merged = rows(page, "kind", "count")
    assert len(merged) <= 16
    assert sum(count for _, count in merged) == 400


def test_rows_that_overlap_lie_below_one_another(many: Client) -> None:
    query = "select 100 * id as start_ns, 150 as duration_ns from slices where id < 3"
    page = ask(many, query, start=0, end=1000, pixels=1000)

    assert rows(page, "row", "start", "name") == [
        (0, 0, query), (0, 200, query), (1, 100, query)
    ]  # fmt: skip


def test_rows_with_a_value_alone_are_a_counter(many: Client) -> None:
    query = "select start as time, self / 2 as value from slices"
    assert rows(ask(many, query, what="tracks"), "kind", "name", "count") == [
        ("counter", query, 400)
    ]
    page = ask(many, query, start=0, end=20 * US, pixels=2, tracks="counters")
    assert rows(page, "start", "value") == [(0, 2.5 * US), (10 * US, 2.5 * US)]


def test_a_row_tells_its_values_and_the_slice_that_it_is_of(many: Client) -> None:
    page = ask(many, SLICES, row=7)

    facts = rows(page, "group", "key", "value", "unit")
    assert facts[0] == ("slice", "name", "aten::op_1", "name")
    assert ("result", "duration", str(5 * US), "ns") in facts
    assert rows(page, "group", "slice", "start")[-1] == ("links", 7, 70 * US)
    moved = ask(many, "select id, start + 1 as start, duration from slices", row=7)
    assert "links" not in [group for (group,) in rows(moved, "group")]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("select name from slices", "the result has no column `start`"),
        ("select start, name from slices", "no column `duration` and no column `value`"),
        ("select name as start, duration from slices", "the column `start` holds no numbers"),
        ("select start, 0 - duration as duration from slices", "a duration below 0"),
        ("select start, name as value from slices", "the column `value` holds no numbers"),
        ("select 1e30 as start, duration from slices", "no times in ns of a trace"),
        ("select start, duration from slices where start < 0", "no row with a start"),
        ("select nome from slices", 'unable to find column "nome"'),
        ("delete from slices", "is not a query"),
    ],
)
def test_what_is_no_track_is_told_in_a_sentence(many: Client, query: str, sentence: str) -> None:
    told = ask(many, query, what="tracks")

    assert sentence in told["error"]
    assert "\n" not in told["error"]


def test_a_track_of_too_many_rows_says_how_many_are_shown(
    many: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_ROWS_OF_TRACK", 100)

    assert rows(ask(many, SLICES, what="tracks"), "count", "note") == [
        (100, "These are the first 100 of 400 rows; ask for fewer.")
    ]
