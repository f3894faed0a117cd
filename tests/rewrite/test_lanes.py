"""Lanes: nothing on one of them crosses, and what fits stays where it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from selftime.rewrite import added_threads as choosing
from selftime.rewrite.added_threads import assign_crossing_free_lanes

SLICES = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 6)), min_size=1, max_size=14
)


def arrays(slices: list[tuple[int, int, int]]) -> tuple[NDArray[np.int64], ...]:
    thread, start, duration = np.array(slices, np.int64).T
    return thread, start, start + duration


@given(SLICES)
def test_no_two_of_a_lane_cross(slices: list[tuple[int, int, int]]) -> None:
    thread, start, end = arrays(slices)
    lane = assign_crossing_free_lanes(thread, start, end)
    for a in range(len(slices)):
        for b in range(len(slices)):
            same = thread[a] == thread[b] and lane[a] == lane[b]
            assert not (same and start[a] < start[b] < end[a] < end[b])


@given(SLICES)
def test_what_nests_is_left_alone(slices: list[tuple[int, int, int]]) -> None:
    thread, start, end = arrays(slices)
    crosses = any(
        thread[a] == thread[b] and start[a] < start[b] < end[a] < end[b]
        for a in range(len(slices))
        for b in range(len(slices))
    )
    assert (assign_crossing_free_lanes(thread, start, end) == 0).all() == (not crosses)


@given(SLICES)
def test_many_lanes_are_chosen_as_few_are(slices: list[tuple[int, int, int]]) -> None:
    few = assign_crossing_free_lanes(*arrays(slices))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "_MAX_LANES_SEARCHED_ONE_BY_ONE", 0)
        assert assign_crossing_free_lanes(*arrays(slices)).tolist() == few.tolist()


def steps_of(slices: list[tuple[int, int, int]], counted: pytest.MonkeyPatch) -> int:
    """How often a node of the tree is set."""
    times = 0
    true = choosing._InnermostSliceTree._set_slice_end

    def count(tops: choosing._InnermostSliceTree, place: int, end: int) -> None:
        nonlocal times
        times += 1
        true(tops, place, end)

    counted.setattr(choosing._InnermostSliceTree, "_set_slice_end", count)
    assign_crossing_free_lanes(*arrays(slices))
    return times


def test_what_crosses_all_others_costs_no_more_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes open at once, covered by what ends at one instant, then asked for from the first on."""
    count = 200
    covered = [(0, 2 * n, 10_000 - 2 * n - n) for n in range(count)]
    covers = [(0, 2 * n + 1, 1_000 + n) for n in range(count)]
    asked = [(0, 3_000 + n, 6_000 - 2 * n) for n in range(count)]
    slices = covered + covers + asked
    assert assign_crossing_free_lanes(*arrays(slices)).max() >= count - 1
    assert steps_of(slices, monkeypatch) <= 4 * len(slices)


def test_what_is_inside_stays_with_what_is_around_it() -> None:
    thread, start, end = arrays([(7, 0, 10), (7, 5, 10), (7, 6, 2), (7, 12, 2), (7, 20, 1)])
    assert assign_crossing_free_lanes(thread, start, end).tolist() == [0, 1, 1, 1, 0]


def test_of_no_slice() -> None:
    none = np.empty(0, np.int64)
    assert assign_crossing_free_lanes(none, none, none).size == 0
