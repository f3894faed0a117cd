from typing import Any

import polars as pl
import pytest

from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.occurrences import occurrences

STEPS = """
    mark 1   | ssssssssssssssss tttttttttttttttt
    cpu 1    | aaaa bb aaaa     aaaaaaaa bb
    call 1   |  k    m  k        k        m
    gpu 7    |   kk   mmmm kk     kk       mmmm
    python 1 | ffffffffffffffffffffffffffffffff
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::mm; line = train.py:31 step; input_shapes = [[2, 3], [3, 4]]
    b = aten::add; line = /code/me/loss.py:7 forward stack
    k = sgemm
    m = void vectorized_add<4>(float*)
    f = train.py(30): step
"""


@pytest.fixture
def trace() -> Trace:
    return sketch(STEPS)


def rows(table: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return table.select(columns).rows()


def test_no_slices_no_rows() -> None:
    assert occurrences(Trace()).is_empty()
    assert occurrences(Trace(), by="duration").is_empty()


def test_all_slices_longest_first(trace: Trace) -> None:
    table = occurrences(trace)
    assert table.height == trace.slices.height
    assert table["duration"].is_sorted(descending=True)
    assert table["share"].sum() == pytest.approx(1)
    assert table["count"].is_null().all()


def test_a_name_has_its_slices_with_what_is_around_them(trace: Trace) -> None:
    table = occurrences(trace, name="aten::mm")
    columns = ("start", "duration", "self", "kind", "thread", "step", "file", "line")
    assert rows(table, *columns) == [
        (170_000, 80_000, 70_000, "operator", "1", 2, "train.py", 31),
        (0, 40_000, 30_000, "operator", "1", 1, "train.py", 31),
        (80_000, 40_000, 30_000, "operator", "1", 1, "train.py", 31),
    ]
    assert rows(table, "operator", "input_shapes", "function")[0] == (
        "aten::mm",
        "[[2, 3], [3, 4]]",
        "step",
    )


def test_device_work_has_its_launch_and_its_operator(trace: Trace) -> None:
    table = occurrences(trace, name="sgemm", kind="kernel").sort("start")
    columns = ("launch_delay", "operator", "line", "step", "stream", "thread")
    assert rows(table, *columns)[0] == (10_000, "aten::mm", 31, 1, 7, "stream 7")
    assert table["step"].to_list() == [1, 1, 2]
    calls = trace.slices["name"].gather(table["launch"]).cast(pl.String)
    assert calls.to_list() == ["sgemm"] * 3


def test_a_kernel_is_found_by_its_short_name(trace: Trace) -> None:
    whole = occurrences(trace, name="void vectorized_add<4>(float*)", kind="kernel")
    short = occurrences(trace, name="vectorized_add", kind="kernel")
    assert whole.height == 2
    assert short.equals(whole)
    assert occurrences(trace, name="nonesuch").is_empty()


def test_a_kind_keeps_its_own(trace: Trace) -> None:
    assert occurrences(trace, kind="annotation")["name"].to_list() == [
        "ProfilerStep#1",
        "ProfilerStep#2",
    ]
    assert occurrences(trace, kind="frame").height == 1
    assert set(occurrences(trace, kind="kernel")["category"].to_list()) == {"kernel"}


def test_slices_like_another(trace: Trace) -> None:
    like = occurrences(trace, name="aten::add")["id"][0]
    assert set(occurrences(trace, like=like)["name"].to_list()) == {"aten::add"}
    with pytest.raises(UsageError, match="is no slice"):
        occurrences(trace, like=trace.slices.height)


def test_a_line_has_what_ran_on_it_and_what_that_launched(trace: Trace) -> None:
    for file in ("loss.py", "/code/me/loss.py", "me/loss.py"):
        table = occurrences(trace, file=file, line=7)
        assert sorted(set(table["kind"].to_list())) == ["call", "kernel", "operator"]
        assert table.height == 6
    assert occurrences(trace, file="oss.py").is_empty()
    assert occurrences(trace, file="loss.py", line=8).is_empty()


def test_a_shape_is_written_as_operators_writes_it(trace: Trace) -> None:
    assert occurrences(trace, shape="[[2, 3], [3, 4]]").height == 3
    assert occurrences(trace, shape="[[2, 3]]").is_empty()


def test_a_stack_is_that_of_the_innermost_frames() -> None:
    trace = sketch("""
        python 1 | mmmmmmmmmm
        python 1 |  ffff gggg
        cpu 1    |   aa   aa
        m = train.py(1): main
        f = train.py(9): forward
        g = train.py(20): other
    """)
    inner = occurrences(trace, name="a", stack="train.py(9): forward")
    assert inner["start"].to_list() == [20_000]
    assert occurrences(trace, name="a", stack="train.py(9): forward;train.py(1): main").height == 1
    assert occurrences(trace, name="a", stack="train.py(1): main").is_empty()
    by_stack = occurrences(trace, name="a", by="stack")
    assert sorted(by_stack["stack"].to_list()) == [
        "train.py(20): other;train.py(1): main",
        "train.py(9): forward;train.py(1): main",
    ]


def test_a_window_keeps_what_is_open_in_it(trace: Trace) -> None:
    table = occurrences(trace, kind="operator", start=65_000, end=85_000)
    assert sorted(rows(table, "name", "start")) == [("aten::add", 50_000), ("aten::mm", 80_000)]
    touching = occurrences(trace, kind="operator", start=70_000, end=80_000)
    assert touching.is_empty()
    with pytest.raises(UsageError, match="not after `start`"):
        occurrences(trace, start=5, end=5)


def test_sums_by_name_tell_how_durations_are_spread(trace: Trace) -> None:
    [row] = occurrences(trace, name="aten::mm", by="name").iter_rows(named=True)
    assert (row["count"], row["duration"], row["self"]) == (3, 160_000, 130_000)
    assert (row["median"], row["p95"], row["longest"]) == (40_000, 80_000, 80_000)
    assert row["start"] == 170_000
    assert row["id"] == occurrences(trace, name="aten::mm")["id"][0]


def test_durations_fall_into_bins(trace: Trace) -> None:
    table = occurrences(trace, name="aten::mm", by="duration")
    assert rows(table, "at_least", "count", "duration") == [
        (39_811, 2, 80_000),
        (79_433, 1, 80_000),
    ]
    assert table["share"].sum() == pytest.approx(1)


def test_bins_hold_every_duration_from_nothing_to_forever() -> None:
    slices = sketch("cpu 1 | " + "ab" * 5).slices
    durations = [0, 1, 2, 9, 10, 999, 1_000, 10**9, 2**62, None]
    trace = Trace(
        slices=slices.with_columns(duration=pl.Series(durations, dtype=pl.Int64)),
        tracks=sketch("cpu 1 | ab").tracks,
    )
    table = occurrences(trace, by="duration")
    assert table["count"].sum() == len(durations)
    known = table.drop_nulls("at_least")
    assert known["at_least"].is_sorted()
    assert (known["at_least"] <= known["longest"]).all()
    assert (known["longest"].head(-1) < known["at_least"].tail(-1)).all()
    assert table["at_least"].null_count() == 1


@pytest.mark.parametrize(
    ("by", "key", "expected"),
    [
        ("line", "line", [31, 7]),
        ("thread", "thread", ["1"]),
        ("step", "step", [1, 2]),
        ("shape", "input_shapes", ["[[2, 3], [3, 4]]", None]),
    ],
)
def test_sums_by_other_keys(trace: Trace, by: Any, key: str, expected: list[Any]) -> None:
    table = occurrences(trace, kind="operator", by=by)
    assert table[key].to_list() == expected
    assert table["duration"].sum() == 200_000
    assert table["count"].sum() == 5


def test_what_all_of_a_row_agree_on_is_told(trace: Trace) -> None:
    table = occurrences(trace, kind="operator", by="step")
    assert table["kind"].to_list() == ["operator", "operator"]
    assert table["name"].to_list() == [None, None]
    assert occurrences(trace, name="aten::mm", by="step")["name"].to_list() == ["aten::mm"] * 2


def test_counted_leaves_out_what_does_not_count() -> None:
    drawing = """
        mark 1 | ssssssssttttttttuuuuuuuuvvvvvvvv
        cpu 1  | aa      aa      aa      aa
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        v = ProfilerStep#4
    """
    assert occurrences(sketch(drawing), name="a").height == 4
    assert occurrences(sketch(drawing), name="a", counted=True).height == 3


def test_the_first_rows_have_their_share_of_all(trace: Trace) -> None:
    first = occurrences(trace, name="aten::mm", top=1)
    assert rows(first, "duration", "share") == [(80_000, 0.5)]
    assert occurrences(trace, by="name", top=2).height == 2
    with pytest.raises(UsageError, match="`top`"):
        occurrences(trace, top=-1)
