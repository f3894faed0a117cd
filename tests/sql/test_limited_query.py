"""A query in a process of its own: its answers, and what stops it."""

import sys
from pathlib import Path
from threading import Event

import pytest
from polars.testing import assert_frame_equal
from tests.compare.programs import Program, record

import selftime
from selftime.errors import UsageError
from selftime.sql import QueryError
from selftime.sql.limited_query import LimitedQueries, QueryRequest, StoppedQuery
from selftime.sql.query_limits import QueryLimits

TOTALS = "select name, sum(duration) as total from slices group by name order by total desc, name"
ENDLESS = (
    "with n as (select * from slices limit 60) "
    "select count(*) from n a join n b on a.name <= b.name join n c on b.name <= c.name "
    "join n d on c.name <= d.name join n e on d.name <= e.name join n f on e.name <= f.name"
)
HUGE = "select a.name from slices a cross join slices b cross join slices c cross join slices d"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("recorded")
    record(Program(), folder, "one")
    return str(folder / "one.json")


def test_the_answer_is_that_of_python(place: str) -> None:
    queries = LimitedQueries()
    found = queries.run(QueryRequest(place, TOTALS))
    there = selftime.load(place).sql(TOTALS)
    assert_frame_equal(found.table, there)
    assert found.row_count == there.height
    shapes = QueryRequest(place, "select count(*) as n from x", {"x": "operators top=2"})
    assert queries.run(shapes).table["n"].to_list() == [2]


def test_rows_are_limited_and_counted(place: str) -> None:
    found = LimitedQueries(QueryLimits(rows=3)).run(QueryRequest(place, TOTALS))
    assert (found.table.height, found.row_count) == (3, selftime.load(place).sql(TOTALS).height)


def test_what_cannot_be_answered_is_told_as_in_python(place: str, tmp_path: Path) -> None:
    queries = LimitedQueries()
    with pytest.raises(QueryError, match='unable to find column "nome"'):
        queries.run(QueryRequest(place, "select nome from slices"))
    with pytest.raises(UsageError, match="similar names are"):
        queries.run(QueryRequest(place, "select * from slicez"))
    with pytest.raises(UsageError, match="opens a file"):
        queries.run(QueryRequest(place, "select * from read_csv('x')"))
    with pytest.raises(UsageError, match="no such file"):
        queries.run(QueryRequest(str(tmp_path / "none.json"), TOTALS))


def test_a_query_is_stopped_after_its_time_or_when_nobody_waits(place: str) -> None:
    queries = LimitedQueries(QueryLimits(seconds=1.0))
    with pytest.raises(StoppedQuery, match=r"was stopped after 1 s; ask for less"):
        queries.run(QueryRequest(place, ENDLESS))
    gone = Event()
    gone.set()
    with pytest.raises(StoppedQuery, match="was cancelled"):
        LimitedQueries().run(QueryRequest(place, ENDLESS), gone.is_set)


def test_a_process_answers_the_next_query_with_the_trace_as_it_is_then(tmp_path: Path) -> None:
    record(Program(), tmp_path, "one")
    request = QueryRequest(str(tmp_path / "one.json"), "select count(*) as n from slices")
    queries = LimitedQueries()
    first = queries.run(request).table.item()
    [worker] = queries._waiting
    assert queries.run(request).table.item() == first
    assert queries._waiting == [worker]
    record(Program(steps=2), tmp_path, "one")
    assert queries.run(request).table.item() != first
    worker.process.kill()  # as the system does where memory is short
    worker.process.wait()
    assert queries.run(request).table.height == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_a_query_has_no_more_memory_than_it_may(place: str) -> None:
    queries = LimitedQueries(QueryLimits(memory_bytes=200 << 20))
    with pytest.raises(StoppedQuery, match=r"needs more memory than 200 MiB"):
        queries.run(QueryRequest(place, HUGE))
    assert queries.run(QueryRequest(place, "select 1 as one")).table["one"].to_list() == [1]
