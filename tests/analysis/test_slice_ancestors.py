"""What lies around every slice, against a climb from each."""

import numpy as np
import pytest

from selftime.analysis.slice_ancestors import (
    nearest_ancestor_of_every_slice,
    nearest_ancestor_of_slices,
    outermost_ancestor_of_every_slice,
)
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.testing import sketch
from selftime.trace import Trace

TWO_THREADS = """
cpu 1 | aaaaaaaaaaaaaa bbbb
cpu 1 |  cccccc ddddd   ee
cpu 1 |   f gg   h
cpu 2 | iiiiiiii jjjj
cpu 2 |  kk lll
"""


def outermost(drawn: Trace, wanted: np.ndarray) -> list[int]:
    parent, found = parent_of_every_slice(drawn), []
    for slice_id in range(drawn.slices.height):
        at, best = slice_id, NO_SLICE
        while at != NO_SLICE:
            best = at if wanted[at] else best
            at = int(parent[at])
        found.append(best)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_ancestors_are_those_that_a_climb_finds(seed: int) -> None:
    drawn = sketch(TWO_THREADS)
    count = drawn.slices.height
    wanted = np.random.default_rng(seed).random(count) < 0.3
    every = np.arange(count)
    nearest = nearest_ancestor(parent_of_every_slice(drawn), wanted, every)
    assert nearest_ancestor_of_every_slice(drawn, wanted).tolist() == nearest.tolist()
    assert outermost_ancestor_of_every_slice(drawn, wanted).tolist() == outermost(drawn, wanted)
    for asked in (np.append(every, NO_SLICE), np.array([count - 1]), every[:0]):
        expected = np.append(nearest, NO_SLICE)[asked]
        assert nearest_ancestor_of_slices(drawn, wanted, asked).tolist() == expected.tolist()


def test_a_trace_without_slices_has_no_ancestors() -> None:
    nothing = Trace()
    assert nothing.slices.height == 0
    assert not nearest_ancestor_of_every_slice(nothing, np.zeros(0, bool)).size
    assert not outermost_ancestor_of_every_slice(nothing, np.zeros(0, bool)).size


def test_slices_need_not_be_in_order_of_depth() -> None:
    assert not sketch(TWO_THREADS).slices["depth"].is_sorted()
