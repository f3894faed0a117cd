"""Host slices and Python frames of a thread as one tree."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime import intervals
from selftime.analysis.call_tree.call_tree import call_tree
from selftime.nesting import NONE
from selftime.testing import sketch
from selftime.trace import Trace

if TYPE_CHECKING:
    from tests.conftest import ReadReal

COLUMN = 10_000


def woven(trace: Trace) -> list[tuple[str, str | None, int]]:
    """Each entry's name, that of its parent, and its self time in columns of a drawing."""
    found = call_tree(trace)
    text = trace.slices["name"].cast(pl.String).to_list()
    rows = zip(found.id.tolist(), found.parent.tolist(), found.self_time.tolist(), strict=True)
    parents = [None if above == NONE else text[found.id[above]] for above in found.parent.tolist()]
    return sorted(
        (text[own], parent, time // COLUMN)
        for (own, _, time), parent in zip(rows, parents, strict=True)
    )


def test_nothing_recorded_is_an_empty_tree() -> None:
    assert call_tree(Trace()).id.size == 0


def test_operators_are_within_frames_and_frames_within_operators() -> None:
    trace = sketch("""
        python 1 | mmmmmmmmmmmm
        cpu 1    |  aaaaaaaa
        python 1 |   ffff
        cpu 1    |    bb
        call 1   |     c
    """)

    assert woven(trace) == [
        ("a", "m", 4),
        ("b", "f", 1),
        ("c", "b", 1),
        ("f", "a", 2),
        ("m", None, 4),
    ]


def test_what_crosses_a_frame_keeps_the_larger_part() -> None:
    """An annotation begins within `__enter__`; an operator's end is rounded over its frame's."""
    trace = sketch("""
        python 1 | mmmmmmmmmmmmmmmmmmmm
        python 1 |  iii      ffff ooo
        mark 1   |    rrrrrr
        cpu 1    |             aaaaaa
    """)
    cut = sketch("""
        python 1 | mmmmmmmmmmmm
        python 1 |  fffffff
        cpu 1    |    aaaaaaaa
        cpu 1    |      b
    """)

    assert woven(trace) == [
        ("a", "m", 1),
        ("f", "m", 4),
        ("i", "m", 3),
        ("m", None, 4),
        ("o", "a", 3),
        ("r", "m", 5),
    ]
    assert woven(cut) == [("a", "f", 4), ("b", "a", 1), ("f", "m", 2), ("m", None, 5)]


def test_the_recorders_own_operators_take_no_part() -> None:
    trace = sketch("p = profiler::_record_function_enter_new\ncpu 1 | aappaa")

    assert [name for name, _, _ in woven(trace)] == ["a", "a"]


def test_what_ends_on_another_thread_is_alone() -> None:
    trace = sketch("""
        a = work; asynchronous = true
        cpu 1 | aaaaaa
        cpu 1 |  bb
    """)

    assert woven(trace) == [("b", None, 2), ("work", None, 6)]


LANES = st.text("  abcdef", max_size=30)


@given(st.lists(LANES, min_size=7, max_size=7))
def test_every_moment_of_a_thread_has_one_innermost_slice(lanes: list[str]) -> None:
    kinds = [*["python 1"] * 3, *["cpu 1"] * 2, "mark 1", "call 1"]
    drawing = "\n".join(f"{kind} | {lane}" for kind, lane in zip(kinds, lanes, strict=True))
    _check(sketch(drawing))


def _check(trace: Trace) -> None:
    found = call_tree(trace)
    slices = trace.slices[pl.Series(found.id, dtype=pl.UInt32)]
    thread = trace.tracks["thread"].gather(slices["track"]).to_numpy()
    start = slices["start"].to_numpy()
    end = start + slices["duration"].fill_null(0).to_numpy()
    assert (found.self_time >= 0).all()
    assert (found.parent < np.arange(found.parent.size)).all()
    for number in np.unique(thread):
        mine = thread == number
        covered = intervals.length(intervals.union(start[mine], end[mine]))
        assert found.self_time[mine].sum() == covered


@pytest.mark.traces
def test_every_moment_has_one_innermost_slice_in_every_trace(
    real: "ReadReal", real_names: list[str]
) -> None:
    for name in real_names:
        if real(name).op_args["asynchronous"].sum() == 0:
            _check(real(name))
