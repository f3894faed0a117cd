"""Sets of intervals against sets of instants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.intervals import Intervals, clip, cut_intervals, intersect, length, subtract, union

Pairs = list[tuple[int, int]]

instants = st.integers(-20, 20)
pairs = st.lists(st.tuples(instants, instants), max_size=12)


def covered(pairs: Pairs) -> set[int]:
    """The instants that a list of half-open intervals covers."""
    return {instant for start, end in pairs for instant in range(start, end)}


def held(these: Intervals) -> set[int]:
    """The instants of a set, which must be ordered, disjoint, and without empty intervals."""
    starts, ends = these.starts.tolist(), these.ends.tolist()
    assert all(start < end for start, end in zip(starts, ends, strict=True))
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert these.starts.dtype == these.ends.dtype == np.int64
    return covered(list(zip(starts, ends, strict=True)))


def of(pairs: Pairs) -> Intervals:
    return union([start for start, _ in pairs], [end for _, end in pairs])


def test_nothing() -> None:
    nothing = union([], [])
    assert held(nothing) == held(intersect(nothing, nothing)) == held(subtract(nothing, nothing))
    assert length(nothing) == 0


@given(pairs)
def test_union_and_length(given_pairs: Pairs) -> None:
    found = of(given_pairs)
    assert held(found) == covered(given_pairs)
    assert length(found) == len(covered(given_pairs))


@given(pairs)
def test_a_union_joins_what_touches(given_pairs: Pairs) -> None:
    found = of(given_pairs)
    assert not set(found.starts.tolist()) & set(found.ends.tolist())


@given(pairs)
def test_union_does_not_depend_on_order(given_pairs: Pairs) -> None:
    assert np.array_equal(of(given_pairs), of(given_pairs[::-1]))


@given(pairs, pairs)
def test_intersection(first: Pairs, second: Pairs) -> None:
    assert held(intersect(of(first), of(second))) == covered(first) & covered(second)


@given(pairs, pairs)
def test_difference(first: Pairs, second: Pairs) -> None:
    assert held(subtract(of(first), of(second))) == covered(first) - covered(second)


@given(pairs, instants, instants)
def test_clip(given_pairs: Pairs, start: int, end: int) -> None:
    found = held(clip(of(given_pairs), start, end))
    assert found == covered(given_pairs) & set(range(start, end))


@given(pairs, pairs)
def test_lengths_add_up(first: Pairs, second: Pairs) -> None:
    a, b = of(first), of(second)
    assert length(subtract(a, b)) + length(intersect(a, b)) == length(a)


@pytest.mark.parametrize("far", [2**62, -(2**62)])
def test_far_times_stay_exact(far: int) -> None:
    assert held(Intervals(*(part - far for part in union([far, far + 2], [far + 1, far + 5])))) == {
        *(0, 2, 3, 4)
    }


def test_cut_pieces_are_the_intervals_and_end_at_cuts() -> None:
    rng = np.random.default_rng(5)
    for size in (0, 1, 40):
        starts = rng.integers(0, 1_000, size)
        ends = starts + rng.integers(1, 100, size)
        cuts = np.unique(rng.integers(0, 1_100, 30))
        pieces = cut_intervals(starts, ends, cuts)
        assert (pieces.ends > pieces.starts).all()
        for index in range(size):
            own = pieces.of == index
            edges = [starts[index], *cuts[(cuts > starts[index]) & (cuts < ends[index])]]
            assert pieces.starts[own].tolist() == edges
            assert pieces.ends[own].tolist() == [*edges[1:], ends[index]]
            assert pieces.is_first[own].tolist() == [True] + [False] * (len(edges) - 1)
        assert cut_intervals(starts, ends, cuts[:0]).ends.tolist() == ends.tolist()


def test_sets_are_equal_by_their_intervals() -> None:
    first = union([0, 5], [2, 6])
    assert first == union([5, 0], [6, 2])
    assert first != union([0, 5], [2, 7])
    assert first != union([0], [2])
    assert first != (0, 5)
