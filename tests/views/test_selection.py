from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.selection import selection

US = 1_000
TIMES = ("self", "busy", "total", "longest")


def told(trace: Trace, **options: Any) -> list[tuple[Any, ...]]:
    """Rows as what, count, and self, busy, total and longest in us."""
    table = selection(trace, **options).with_columns(pl.col(TIMES) // US)
    return table.select("what", "count", *TIMES).rows()


def test_nothing_recorded_has_no_rows() -> None:
    assert selection(Trace()).is_empty()
    assert selection(sketch("cpu 1 | aa"), start=500 * US, end=600 * US).is_empty()


def test_the_whole_trace_by_name_under_a_row_of_all() -> None:
    trace = sketch("""
        cpu 1 | aaaaaa  b
        cpu 1 |  cc
        gpu 7 |     bbbb
    """)

    assert told(trace) == [
        ("all", 4, 110, 90, 130, 60),
        ("a", 1, 40, 60, 60, 60),
        ("b", 1, 40, 40, 40, 40),
        ("c", 1, 20, 20, 20, 20),
        ("b", 1, 10, 10, 10, 10),
    ]


def test_what_reaches_beyond_is_cut_and_self_time_with_it() -> None:
    trace = sketch("""
        cpu 1 | aaaaaaaaaa
        cpu 1 |  bbbb cc
    """)

    assert told(trace, start=30 * US, end=80 * US) == [
        ("all", 3, 50, 50, 90, 50),
        ("b", 1, 20, 20, 20, 20),
        ("c", 1, 20, 20, 20, 20),
        ("a", 1, 10, 50, 50, 50),
    ]


def test_overlapping_slices_of_one_name_are_busy_once() -> None:
    trace = sketch("""
        gpu 7 | kkkk  k
        gpu 8 |   kkkk
    """)

    assert told(trace)[1] == ("k", 3, 90, 70, 90, 40)


def test_by_track_and_category() -> None:
    trace = sketch("""
        cpu 1 | aaaa
        gpu 7 |   kk
        gpu 8 |   m
    """)

    rows = selection(trace, by="track").select("what", "category", "busy").rows()
    assert rows[1:] == [
        ("1", "host", 40 * US),
        ("7", "device", 20 * US),
        ("8", "device", 10 * US),
    ]
    assert [row[:2] for row in told(trace, by="category")] == [
        ("all", 3),
        ("cpu_op", 1),
        ("kernel", 2),
    ]


def test_tracks_can_be_chosen_and_rows_cut() -> None:
    trace = sketch("""
        cpu 1 | aaaa b
        gpu 7 |   kk
    """)

    assert [row[0] for row in told(trace, tracks="device")] == ["all", "k"]
    assert [row[0] for row in told(trace, tracks="host", top=1)] == ["all", "a"]


def test_refuses_what_is_no_time_or_number() -> None:
    with pytest.raises(UsageError, match="not after"):
        selection(sketch("cpu 1 | a"), start=20, end=10)
    with pytest.raises(UsageError, match="`top` is `-1`"):
        selection(sketch("cpu 1 | a"), top=-1)


lines = st.lists(st.text("ab ", min_size=1, max_size=14), min_size=1, max_size=4)


@given(lines, st.integers(0, 14), st.integers(1, 14))
def test_self_times_of_a_track_add_up_to_its_union(drawn: list[str], begin: int, long: int) -> None:
    trace = sketch("\n".join(f"cpu 1 | {line}" for line in drawn))
    start, end = begin * 10 * US, (begin + long) * 10 * US
    table = selection(trace, start=start, end=end, by="track")

    column = 10 * US
    covered = np.zeros(40, bool)
    for first, length in trace.slices.select("start", "duration").iter_rows():
        covered[first // column : (first + length) // column] = True
    seen = int(covered[start // column : end // column].sum()) * column
    assert table["busy"].to_list() == ([] if table.is_empty() else [seen, seen])
    assert table["self"].to_list() == ([] if table.is_empty() else [seen, seen])
