"""Climbing from slices to those around them, where calls are nested very deep."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from selftime.nesting import (
    NO_SLICE,
    innermost_slice_at,
    innermost_slice_on_tracks,
    nearest_ancestor,
    nest_slices,
)

HEIGHT = 300
"""Deeper than climbing goes one by one."""


def test_the_nearest_wanted_slice_may_be_far_above() -> None:
    parent = np.arange(HEIGHT) - 1
    for far in (0, 1, HEIGHT // 2, HEIGHT - 1):
        wanted = np.arange(HEIGHT) == far
        found = nearest_ancestor(parent, wanted, np.arange(HEIGHT))
        expected = np.where(np.arange(HEIGHT) >= far, far, NO_SLICE)
        assert (found == expected).all()


def test_after_a_tower_of_calls_the_outer_ones_are_open() -> None:
    start, parent = np.arange(HEIGHT), np.arange(HEIGHT) - 1
    end = 2 * HEIGHT - start
    when = np.arange(2 * HEIGHT + 2)
    inner = np.where(when < HEIGHT, when, 2 * HEIGHT - when - 1)
    expected = np.where(inner >= 0, inner, NO_SLICE)

    assert (innermost_slice_at(start, end, parent, when) == expected).all()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 20)), max_size=40),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 70)), max_size=20),
    st.sampled_from([1, 1 << 59]),
)
def test_many_tracks_are_asked_as_each_by_itself(
    slices: list[tuple[int, int, int]], asked: list[tuple[int, int]], unit: int
) -> None:
    """Also where times and tracks together do not fit 64 bits."""
    columns = np.array(slices, np.int64).reshape(-1, 3)
    track, start = columns[:, 0], columns[:, 1]
    parent = nest_slices(
        track, start, start + columns[:, 2], np.zeros_like(start), rounding_ns=0
    ).parent
    where, when = np.array(asked, np.int64).reshape(-1, 2).T
    scale = unit if unit == 1 else unit // 64
    end = (start + columns[:, 2]) * scale
    found = innermost_slice_on_tracks(track, start * scale, end, parent, where, when * scale)

    for number in range(len(asked)):
        own = np.flatnonzero(track == where[number])
        own = own[np.argsort(start[own], kind="stable")]
        above = np.array(
            [
                NO_SLICE if parent[i] == NO_SLICE else np.flatnonzero(own == parent[i])[0]
                for i in own
            ],
            np.int64,
        )
        one = innermost_slice_at(
            start[own] * scale, end[own], above, when[number : number + 1] * scale
        )
        assert found[number] == (NO_SLICE if one[0] == NO_SLICE else own[one[0]])
