"""Nesting against a naive model that looks at every pair of slices, and at every instant."""

from typing import Final

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from selftime.intervals import length, union
from selftime.nesting import (
    MAX_ROUNDING_CROSSING_NS,
    NO_SLICE,
    Nesting,
    innermost_of_slices_at,
    innermost_slice_at,
    nearest_ancestor,
    nest_slices,
)

Slice = tuple[int, int, int]
"""Track, start, end."""


LONG: Final = 10 * MAX_ROUNDING_CROSSING_NS


def found(slices: list[Slice], *, bleed: int = 0) -> Nesting:
    columns = np.array(slices, np.int64).reshape(-1, 3)
    return nest_slices(
        columns[:, 0],
        columns[:, 1],
        columns[:, 2],
        np.zeros(len(slices), np.int64),
        rounding_ns=bleed,
    )


@st.composite
def crossing(draw: st.DrawFn) -> list[Slice]:
    """Slices that may overlap in any way."""
    row = st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12))
    return [(track, start, start + size) for track, start, size in draw(st.lists(row, max_size=14))]


@st.composite
def nested(draw: st.DrawFn) -> list[Slice]:
    """Slices that nest, in any order; siblings may touch, and some have no length."""
    slices: list[Slice] = []

    def fill(track: int, start: int, end: int, depth: int) -> None:
        at = start
        while depth < 4 and at < end and draw(st.booleans()):
            first = draw(st.integers(at, end))
            last = draw(st.integers(first, end))
            slices.append((track, first, last))
            fill(track, first, last, depth + 1)
            at = last + (first == last)

    for track in range(2):
        fill(track, 0, 24, 0)
    return draw(st.permutations(slices))


@st.composite
def moved(draw: st.DrawFn) -> list[Slice]:
    """Nested slices, a few of which are moved: they may cross some, beside much that does not."""
    return [
        (track, start + by, end + by)
        for track, start, end in draw(nested())
        for by in [draw(st.sampled_from([0, 0, 0, 0, 1, 3]))]
    ]


@st.composite
def bleeding(draw: st.DrawFn) -> list[Slice]:
    """Nested slices whose ends are moved by rounding; all are longer than that."""
    scaled = [(t, s * LONG, e * LONG) for t, s, e in draw(nested()) if s < e]
    shift = st.integers(-MAX_ROUNDING_CROSSING_NS // 2, MAX_ROUNDING_CROSSING_NS // 2)
    return [(t, s + draw(shift), e + draw(shift)) for t, s, e in scaled]


def order(slices: list[Slice], i: int) -> tuple[int, int, int]:
    return slices[i][1], -slices[i][2], i


def naive_self_times(slices: list[Slice]) -> list[int]:
    """Each instant belongs to the latest begun of the slices that are open."""
    own = [0] * len(slices)
    for track in {t for t, _, _ in slices}:
        for instant in range(50):
            around = [i for i, (t, s, e) in enumerate(slices) if t == track and s <= instant < e]
            if around:
                own[max(around, key=lambda i: order(slices, i))] += 1
    return own


def naive_parents(slices: list[Slice]) -> list[int]:
    """The last begun of the slices around each that begin before it, or are longer, or first."""
    parents = []
    for i, (track, start, end) in enumerate(slices):
        around = [
            j
            for j, (t, s, e) in enumerate(slices)
            if t == track and s <= start < e and end <= e and order(slices, j) < order(slices, i)
        ]
        parents.append(max(around, key=lambda j: order(slices, j), default=NO_SLICE))
    return parents


def test_nothing() -> None:
    assert found([]).parent.size == 0


@given(crossing() | moved())
def test_self_time_is_that_of_the_innermost(slices: list[Slice]) -> None:
    assert found(slices).self_time.tolist() == naive_self_times(slices)


@given(nested())
def test_parents_of_nested_slices(slices: list[Slice]) -> None:
    assert found(slices).parent.tolist() == naive_parents(slices)


@given(crossing() | moved())
def test_parents_of_crossing_slices(slices: list[Slice]) -> None:
    assert found(slices).parent.tolist() == naive_parents(slices)


@given(nested())
def test_self_time_of_nested_slices_is_the_rest_of_their_children(slices: list[Slice]) -> None:
    nesting = found(slices)
    durations = nesting.end - nesting.start
    has = nesting.parent != NO_SLICE
    inside = np.bincount(nesting.parent[has], durations[has], len(slices)) if slices else durations
    assert np.array_equal(nesting.self_time, durations - inside)


def test_a_crossing_deep_down_in_a_tower() -> None:
    """However deep it lies, and what lies beside it."""
    tower = [(0, depth, 1_000 - depth) for depth in range(200)]
    crossed = [(0, 300, 400), (0, 350, 450), (0, 360, 390), (0, 410, 440), (0, 500, 510)]
    nesting = found(tower + crossed)
    assert nesting.parent.tolist() == [NO_SLICE, *range(199), 199, 199, 201, 201, 199]
    assert nesting.self_time.tolist()[-6:] == [602 - 150 - 10, 50, 40, 30, 30, 10]
    check_invariants(tower + crossed, nesting)


def check_invariants(slices: list[Slice], nesting: Nesting) -> None:
    duration = nesting.end - nesting.start
    assert (duration >= 0).all()
    assert ((nesting.self_time >= 0) & (nesting.self_time <= duration)).all()
    track = np.array([t for t, _, _ in slices], np.int64)
    has = nesting.parent != NO_SLICE
    above = nesting.parent[has]
    assert (nesting.start[above] <= nesting.start[has]).all()
    assert (nesting.end[above] >= nesting.end[has]).all()
    assert (track[above] == track[has]).all()
    assert (nesting.depth[has] == nesting.depth[above] + 1).all()
    assert (nesting.depth[~has] == 0).all()
    for number in set(track.tolist()):
        on = track == number
        assert nesting.self_time[on].sum() == length(union(nesting.start[on], nesting.end[on]))


@given(crossing() | moved())
def test_invariants_where_slices_cross(slices: list[Slice]) -> None:
    check_invariants(slices, found(slices))


@given(crossing() | moved(), st.integers(0, 6))
def test_invariants_where_slices_are_clipped(slices: list[Slice], bleed: int) -> None:
    check_invariants(slices, found(slices, bleed=bleed))


@given(bleeding())
def test_rounding_is_clipped_away(slices: list[Slice]) -> None:
    """Each end moves by no more than its neighbours bled."""
    nesting = found(slices, bleed=MAX_ROUNDING_CROSSING_NS)
    check_invariants(slices, nesting)
    start = np.array([s for _, s, _ in slices], np.int64)
    end = np.array([e for _, _, e in slices], np.int64)
    most = MAX_ROUNDING_CROSSING_NS * len(slices)
    assert (np.abs(nesting.start - start) <= most).all()
    assert (np.abs(nesting.end - end) <= most).all()
    if np.array_equal(nesting.start, start) and np.array_equal(nesting.end, end):
        assert nesting.parent.tolist() == naive_parents(slices)


def test_one_neighbour_moves_an_end_by_what_it_bled() -> None:
    late = found([(0, 0, 50_000), (0, 10_000, 50_900)], bleed=MAX_ROUNDING_CROSSING_NS)
    assert (late.end.tolist(), late.parent.tolist()) == ([50_000, 50_000], [NO_SLICE, 0])
    beside = found([(0, 0, 20_300), (0, 20_000, 40_000)], bleed=MAX_ROUNDING_CROSSING_NS)
    assert (beside.end.tolist(), beside.parent.tolist()) == ([20_000, 40_000], [NO_SLICE, NO_SLICE])
    early = found([(0, 10_000, 20_000), (0, 9_500, 30_000)], bleed=MAX_ROUNDING_CROSSING_NS)
    assert early.parent.tolist() == [1, NO_SLICE]
    longer = found([(0, 0, 50_000), (0, 10_000, 51_001)], bleed=MAX_ROUNDING_CROSSING_NS)
    assert (longer.end.tolist(), longer.parent.tolist()) == ([50_000, 51_001], [NO_SLICE, NO_SLICE])


@given(crossing(), st.integers(1, 6))
def test_what_nests_is_not_clipped(slices: list[Slice], bleed: int) -> None:
    nesting = found(slices, bleed=bleed)
    moved = {
        i
        for i, (_, start, end) in enumerate(slices)
        if (nesting.start[i], nesting.end[i]) != (start, end)
    }
    for i in moved:
        track, start, end = slices[i]
        assert (
            any(t == track and (s < start < e < end or start < s < end < e) for t, s, e in slices)
            or len(moved) > 1
        )


def test_equal_slices_nest_by_rank_then_order() -> None:
    times = np.zeros(3, np.int64), np.zeros(3, np.int64), np.full(3, 5, np.int64)
    assert nest_slices(*times, np.array([1, 0, 1])).parent.tolist() == [1, NO_SLICE, 0]


def test_depth_of_a_thousand_levels() -> None:
    slices = [(0, level, 4000 - level) for level in range(1000)]
    nesting = found(slices)
    assert nesting.depth.tolist() == list(range(1000))


@given(nested(), st.lists(st.integers(-1, 25), max_size=20))
def test_the_innermost_at_an_instant(slices: list[Slice], when: list[int]) -> None:
    slices = sorted((s for s in slices if s[0] == 0), key=lambda s: (s[1], -s[2]))
    nesting = found(slices)
    at = innermost_slice_at(nesting.start, nesting.end, nesting.parent, np.array(when, np.int64))
    for instant, place in zip(when, at.tolist(), strict=True):
        around = [i for i, (_, s, e) in enumerate(slices) if s <= instant < e]
        assert place == max(around, default=NO_SLICE)


@given(nested(), st.lists(st.integers(-1, 25), max_size=20))
def test_the_innermost_of_some_slices_at_an_instant(slices: list[Slice], when: list[int]) -> None:
    """The slices of a track are found among those of others as they are alone."""
    slices = sorted((s for s in slices if s[0] == 0), key=lambda s: (s[1], -s[2]))
    nesting, times = found(slices), np.array(when, np.int64)
    alone = innermost_slice_at(nesting.start, nesting.end, nesting.parent, times)
    ids = 3 * np.arange(len(slices), dtype=np.int64) + 1
    end, parent = np.zeros(3 * len(slices) + 2, np.int64), np.zeros(3 * len(slices) + 2, np.int64)
    end[ids] = nesting.end
    parent[ids] = [NO_SLICE if above == NO_SLICE else ids[above] for above in nesting.parent]
    at = innermost_of_slices_at(ids, nesting.start, end, parent, times)
    assert at.tolist() == [NO_SLICE if place == NO_SLICE else ids[place] for place in alone]


@given(st.data())
def test_the_nearest_wanted_ancestor(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 10))
    parent = [data.draw(st.integers(NO_SLICE, i - 1)) for i in range(size)]
    wanted = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    where = data.draw(st.lists(st.integers(NO_SLICE, size - 1), max_size=8))
    at = nearest_ancestor(np.array(parent), np.array(wanted), np.array(where, np.int64))
    for begin, end in zip(where, at.tolist(), strict=True):
        while begin != NO_SLICE and not wanted[begin]:
            begin = parent[begin]  # noqa: PLW2901 - the climb
        assert end == begin
