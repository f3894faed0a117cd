"""What adds amounts up along trees, against the plain way to do it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from selftime.analysis.call_tree.name_tree import fold_slices_by_name
from selftime.analysis.call_tree.parent_array_forests import (
    is_outermost_of_key,
    nearest_marked_of_every_node,
    nodes_by_level,
    subtree_totals,
)
from selftime.nesting import NO_SLICE, nearest_ancestor

FORESTS = st.lists(st.integers(0, 1 << 20), max_size=80).map(
    lambda draws: np.array([draw % (at + 1) - 1 for at, draw in enumerate(draws)], np.int64)
)
"""Parents before their children; a chain as well as roots alone."""


def around(parent: np.ndarray, at: int) -> list[int]:
    """A place and all that are around it, from the inside."""
    found = []
    while at != NO_SLICE:
        found.append(at)
        at = int(parent[at])
    return found


@given(FORESTS)
def test_levels_are_by_the_distance_from_the_roots(parent: np.ndarray) -> None:
    found = {int(at): depth for depth, level in enumerate(nodes_by_level(parent)) for at in level}
    assert found == {at: len(around(parent, at)) - 1 for at in range(parent.size)}


@given(FORESTS, st.integers(0, 1 << 30))
def test_the_nearest_is_the_first_that_is_wanted_on_the_way_up(
    parent: np.ndarray, seed: int
) -> None:
    wanted = np.random.default_rng(seed).random(parent.size) < 0.2
    where = np.append(np.arange(parent.size), NO_SLICE)
    expected = [next((up for up in around(parent, at) if wanted[up]), NO_SLICE) for at in where]
    assert nearest_ancestor(parent, wanted, where).tolist() == expected


@given(FORESTS, st.integers(0, 1 << 30))
def test_the_nearest_of_every_node_is_that_of_each(parent: np.ndarray, seed: int) -> None:
    marked = np.random.default_rng(seed).random(parent.size) < 0.3
    expected = nearest_ancestor(parent, marked, np.arange(parent.size))
    assert nearest_marked_of_every_node(parent, marked).tolist() == expected.tolist()


@given(FORESTS, st.integers(0, 1 << 30), st.sampled_from([1, 3, 1 << 40]), st.sampled_from([0, -2]))
def test_an_outermost_node_has_none_of_its_key_around_it(
    parent: np.ndarray, seed: int, codes: int, least: int
) -> None:
    key = np.random.default_rng(seed).integers(0, 4, parent.size) * (codes // 3 + 1) + least
    expected = [key[at] not in key[around(parent, at)[1:]] for at in range(parent.size)]
    assert is_outermost_of_key(parent, key).tolist() == expected


def test_the_nearest_is_found_up_a_tower() -> None:
    parent = np.arange(-1, 999)
    wanted = np.arange(1000) == 3
    assert nearest_ancestor(parent, wanted, np.array([999, 2, 3])).tolist() == [3, NO_SLICE, 3]


@given(FORESTS, st.integers(0, 1 << 30))
def test_totals_hold_what_is_within(parent: np.ndarray, seed: int) -> None:
    own = np.random.default_rng(seed).integers(-9, 9, parent.size)
    expected = np.zeros(parent.size, np.int64)
    for at in range(parent.size):
        expected[around(parent, at)] += own[at]
    assert subtree_totals(parent, own).tolist() == expected.tolist()


@given(FORESTS, st.integers(0, 1 << 30), st.sampled_from([3, 1 << 40]))
def test_equal_ways_fold_to_one_node_in_order_of_codes(
    parent: np.ndarray, seed: int, codes: int
) -> None:
    code = np.random.default_rng(seed).choice([0, 1, codes], parent.size)
    own = np.arange(parent.size)
    tree = fold_slices_by_name(parent, code, own, np.ones(parent.size, np.int64))
    ways = [tuple(int(code[up]) for up in reversed(around(parent, at))) for at in own.tolist()]
    expected: dict[tuple[int, ...], list[int]] = {}
    for at, way in enumerate(ways):
        expected.setdefault(way, []).append(at)
    found = [
        tuple(int(tree.code[up]) for up in reversed(around(tree.parent, node)))
        for node in range(tree.parent.size)
    ]
    assert len(set(found)) == len(found)
    assert dict(zip(found, tree.own.tolist(), strict=True)) == {
        way: sum(places) for way, places in expected.items()
    }
    assert dict(zip(found, tree.count.tolist(), strict=True)) == {
        way: len(places) for way, places in expected.items()
    }
