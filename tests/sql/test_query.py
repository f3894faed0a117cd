"""A query asks every table and every view, and nothing else."""

from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from selftime import schema
from selftime.errors import UsageError
from selftime.sql import TABLES, VIEW_NAMES, query
from selftime.testing import sketch
from selftime.trace import Job, Trace, TraceInJob
from selftime.views import RANK_COLUMNS, VIEWS

DRAWN = """
    a = aten::addmm; input_shapes = [[8,8],[8,8]]; line = train.py:7 main
    b = aten::nonzero; line = train.py:8 main
    k = gemm_kernel
    cpu 1  | aaaa  bbbb
    call 1 |  k
    gpu 7  |   kkkkkk
"""


ALL = "select * from {}"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return sketch(DRAWN)


@pytest.fixture(scope="module")
def job(trace: Trace) -> Job:
    member = TraceInJob("rank 1", 1, 2)
    return Job(
        {"a": trace, "b": sketch(DRAWN)}, members={"a": TraceInJob("rank 0", 0, 2), "b": member}
    )


@pytest.mark.parametrize("name", schema.TABLES)
def test_every_table_is_there_as_declared(trace: Trace, name: str) -> None:
    relation = f"tables.{name}" if name in VIEWS else name
    answer = query(trace, ALL.format(relation))
    assert answer.columns == list(schema.TABLES[name].dtypes)
    expected = trace.tables()[name]
    assert_frame_equal(answer, expected, check_dtypes=False, categorical_as_str=True)


@pytest.mark.parametrize("name", VIEW_NAMES)
def test_every_view_is_there_as_declared(trace: Trace, name: str) -> None:
    view = VIEWS[VIEW_NAMES[name]]
    answer = query(trace, ALL.format(name))
    assert answer.columns == [column.name for column in view.columns]
    assert_frame_equal(answer, view(trace), check_dtypes=False, categorical_as_str=True)


def test_tables_are_joined_and_names_are_text(trace: Trace) -> None:
    text = """
        with work as (select id, stream from device_args)
        select s.name, w.stream, sum(s.duration) as total from slices s join work w on w.id = s.id
        where s.name like '%gemm%' group by s.name, w.stream
    """
    [duration] = trace.slices.filter(pl.col("category") == "kernel")["duration"]
    assert query(trace, text).rows() == [("gemm_kernel", 7, duration)]


def test_a_view_with_options_has_a_name_of_its_own(trace: Trace) -> None:
    words = {"shapes": "operators by=shape top_level=true", "one": "operators top=1"}
    answer = query(trace, "select name, input_shapes from shapes", words)
    expected = VIEWS["operators"](trace, by="shape", top_level=True)
    assert answer["name"].to_list() == expected["name"].cast(pl.String).to_list()
    assert query(trace, "select * from one", {"one": "operators top=1"}).height == 1


def test_names_that_a_table_and_a_view_share_are_told_apart(trace: Trace) -> None:
    with pytest.raises(UsageError, match=r"write `tables\.lines` or `views\.lines`"):
        query(trace, "select * from lines")
    assert "how" in query(trace, "select l.how from tables.lines l").columns
    assert set(query(trace, "show tables")["name"]) == {
        *(f"tables.{name}" if name in VIEWS else name for name in TABLES),
        *VIEW_NAMES,
    }


def test_of_a_job_each_row_tells_its_trace(job: Job) -> None:
    text = """
        select m.rank, s.trace, count(*) as n from slices s join members m on m.trace = s.trace
        group by m.rank, s.trace order by m.rank
    """
    height = job.traces["a"].slices.height
    assert query(job, text).rows() == [(0, "a", height), (1, "b", height)]
    assert query(job, "select * from operators")["trace"].unique().sort().to_list() == ["a", "b"]
    across = query(job, "select * from stragglers")
    assert across.columns == [column.name for column in VIEWS["stragglers"].columns]
    assert RANK_COLUMNS[1].name not in query(job, "select * from operators").columns


def test_an_empty_job_has_its_columns() -> None:
    answer = query(Job({}), "select * from slices")
    assert answer.columns == ["trace", *schema.TABLES["slices"].dtypes]
    assert answer.height == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("select nme from slices", r'unable to find column "nme"; valid columns: .*"name"'),
        ("select * from slics", r"no view `slics`; similar names are .*`slices`"),
        ("select * from zzzzzzzz", r"no view `zzzzzzzz`; ask `show tables`"),
        ("selec 1", r"`selec 1` is not a query"),
        ("select (", r"cannot be answered"),
        ("", r"`` is not a query"),
        ("drop table slices", r"`drop table slices` is not a query"),
        ("delete from slices", r"is not a query"),
        ("create table x as select 1", r"is not a query"),
        ("select 1; drop table slices", r"one \(and only one\) statement"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence(trace: Trace, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        query(trace, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "opening",
    [
        "read_csv('{}')",
        "READ_CSV ('{}')",
        "\"read_csv\"('{}')",
        "read_csv/*x*/('{}')",
        "read_csv -- x\n('{}')",
        "/* ' */ read_csv('{}') /* ' */",
        "slices -- '\r join read_csv('{}') on true -- '",
        "read_parquet('{}')",
        "read_json('{}')",
        "read_ipc('{}')",
        "slices where name = '\\' or 1 in (select 1 from read_csv('{}'))",
        "slices where name = $$'$$ union select * from read_csv('{}')",
    ],
)
def test_no_query_opens_a_file(trace: Trace, tmp_path: Path, opening: str) -> None:
    file = tmp_path / "secret"
    file.write_text("secret\n1\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"opens a file"):
        query(trace, ALL.format(opening.format(file)))


def test_texts_and_columns_may_be_called_like_readers(trace: Trace) -> None:
    text = "select name as read_name from slices where name <> 'read_csv(' and name <> 'it''s'"
    assert query(trace, text).columns == ["read_name"]


@given(st.text(max_size=60), st.sampled_from(["{}", "select {} from slices", ALL]))
def test_any_text_is_answered_or_refused(text: str, form: str) -> None:
    with suppress(UsageError):
        query(sketch(DRAWN), form.replace("{}", text))


@pytest.mark.parametrize(
    ("views", "told"),
    [
        ({"slices": "operators"}, "is already in use"),
        ({"lines": "operators"}, "is already in use"),
        ({"a b": "operators"}, "is not a valid name"),
        ({"x": "operatrs"}, "there is no view `operatrs`"),
        ({"x": "operators by=shapes"}, "`by` is `shapes`"),
        ({"x": "operators nothing=1"}, "no option `nothing`"),
        ({"x": "operators 'by"}, "has an unclosed quote"),
        ({"x": ""}, "there is no view ``"),
    ],
)
def test_wrong_views_are_told(trace: Trace, views: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        query(trace, "select * from x", views)


def test_a_trace_and_a_job_have_it_as_a_method(trace: Trace, job: Job) -> None:
    assert trace.sql("select count(*) as n from x", x="operators").item() > 0
    assert job.sql("select count(*) as n from members").item() == 2
