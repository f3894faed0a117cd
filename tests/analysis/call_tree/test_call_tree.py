"""Host slices and Python frames of a thread as one tree."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime import intervals
from selftime.analysis.call_tree.call_tree import CallTree, call_tree
from selftime.analysis.call_tree.self_times import self_times
from selftime.nesting import NO_SLICE
from selftime.testing import sketch
from selftime.trace import Trace

if TYPE_CHECKING:
    from tests.conftest import ReadReal

COLUMN = 10_000


def drawn(trace: Trace, *, frames: bool = True) -> list[tuple[str, str | None, int]]:
    """Each entry's name, that of its parent, and its self time in columns of a drawing."""
    found = call_tree(trace, frames=frames)
    text = trace.slices["name"].cast(pl.String).to_list()
    rows = zip(found.id.tolist(), found.parent.tolist(), found.self_time.tolist(), strict=True)
    parents = [
        None if above == NO_SLICE else text[found.id[above]] for above in found.parent.tolist()
    ]
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

    assert drawn(trace) == [
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

    assert drawn(trace) == [
        ("a", "m", 1),
        ("f", "m", 4),
        ("i", "m", 3),
        ("m", None, 4),
        ("o", "a", 3),
        ("r", "m", 5),
    ]
    assert drawn(cut) == [("a", "f", 4), ("b", "a", 1), ("f", "m", 2), ("m", None, 5)]


def test_the_recorders_own_operators_take_no_part() -> None:
    trace = sketch("p = profiler::_record_function_enter_new\ncpu 1 | aappaa")

    assert [name for name, _, _ in drawn(trace)] == ["a", "a"]


@pytest.mark.parametrize("frames", [True, False])
def test_what_ends_on_another_thread_is_alone_and_no_time_of_its_own(frames: bool) -> None:
    trace = sketch("""
        a = work; asynchronous = true
        cpu 1 | aaaaaa
        cpu 1 |  bb
    """)

    assert drawn(trace, frames=frames) == [("b", None, 2), ("work", None, 0)]


def test_what_ends_on_another_thread_takes_no_memory_from_the_operator_around() -> None:
    trace = sketch("""
        a = work; asynchronous = true
        cpu 1    | bbbbbbbb
        cpu 1    |  aaa
        memory 1 |   M
        M = m; bytes = 8
    """)
    table = self_times(trace)

    assert dict(zip(table.name, table.memory["self_cpu"].tolist(), strict=True)) == {
        "b": 8,
        "work": 0,
    }


STEPS = """
    python 1 | mmmmmmmmmmmmmmmm
    python 1 |  ss    ss    ss
    mark 1   |   111111222222
    cpu 1    |    aa    bb
    1 = ProfilerStep#1
    2 = ProfilerStep#2
"""


def test_steps_take_no_part_where_there_are_frames() -> None:
    """They begin in one frame and end in another; their time is that of the frames."""
    without = sketch("\n".join(line for line in STEPS.splitlines() if "python" not in line))

    assert drawn(sketch(STEPS)) == [
        ("a", "m", 2),
        ("b", "m", 2),
        ("m", None, 6),
        ("s", "m", 2),
        ("s", "m", 2),
        ("s", "m", 2),
    ]
    assert drawn(without) == [
        ("ProfilerStep#1", None, 4),
        ("ProfilerStep#2", None, 4),
        ("a", "ProfilerStep#1", 2),
        ("b", "ProfilerStep#2", 2),
    ]


def test_without_frames_what_they_do_is_time_of_what_is_around_them() -> None:
    assert drawn(sketch(STEPS), frames=False) == [
        ("ProfilerStep#1", None, 4),
        ("ProfilerStep#2", None, 4),
        ("a", "ProfilerStep#1", 2),
        ("b", "ProfilerStep#2", 2),
    ]


def test_a_trace_has_one_tree() -> None:
    framed, plain = sketch(STEPS), sketch("cpu 1 | aaa")

    assert call_tree(framed) is call_tree(framed)
    assert call_tree(framed) is not call_tree(framed, frames=False)
    assert call_tree(plain) is call_tree(plain, frames=False)
    assert not call_tree(framed).self_time.flags.writeable


LANES = st.text("  abcdef", max_size=30)


@given(st.lists(LANES, min_size=7, max_size=7))
def test_every_moment_of_a_thread_has_one_innermost_slice(lanes: list[str]) -> None:
    kinds = [*["python 1"] * 3, *["cpu 1"] * 2, "mark 1", "call 1"]
    drawing = "\n".join(f"{kind} | {lane}" for kind, lane in zip(kinds, lanes, strict=True))
    _check(sketch(drawing))


def _check(trace: Trace) -> None:
    for frames in (True, False):
        _check_tree(trace, call_tree(trace, frames=frames))


def _check_tree(trace: Trace, found: CallTree) -> None:
    slices = trace.slices[pl.Series(found.id, dtype=pl.UInt32)]
    thread = trace.tracks["thread"].gather(slices["track"]).to_numpy()
    start = slices["start"].to_numpy()
    end = start + slices["duration"].fill_null(0).to_numpy()
    assert (found.self_time >= 0).all()
    assert not found.self_time[found.is_cross_thread].any()
    assert (found.parent < np.arange(found.parent.size)).all()
    for number in np.unique(thread):
        mine = (thread == number) & ~found.is_cross_thread
        covered = intervals.length(intervals.union(start[mine], end[mine]))
        assert found.self_time[mine].sum() == covered


@pytest.mark.traces
def test_every_moment_has_one_innermost_slice_in_every_trace(
    real: "ReadReal", real_names: list[str]
) -> None:
    for name in real_names:
        _check(real(name))
