"""What things have with all that is within them."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from selftime.compare.amounts_per_step import (
    AmountsPerStep,
    inclusive_amounts,
    mean_and_variance_over_steps,
)
from selftime.nesting import NO_SLICE

STEPS = 3


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Parents in any order of places, and amounts: thing, step (or NONE) and how much."""
    size = draw(st.integers(1, 8))
    order = draw(st.permutations(range(size)))
    parent = [NO_SLICE] * size
    for place, thing in enumerate(order):
        above = draw(st.integers(-1, place - 1))
        parent[thing] = NO_SLICE if above < 0 else order[above]
    steps = st.sampled_from([NO_SLICE, *range(STEPS)])
    amount = st.tuples(st.integers(0, size - 1), steps, st.integers(0, 9))
    return parent, draw(st.lists(amount, max_size=20))


@given(trees())
def test_each_amount_counts_for_its_thing_and_all_around_it(
    drawn: tuple[list[int], list[tuple[int, int, int]]],
) -> None:
    parent, amounts = drawn
    told: Counter[tuple[int, int]] = Counter()
    for thing, step, much in amounts:
        at = thing
        while NO_SLICE not in (at, step):
            told[at, step] += much
            at = parent[at]
    columns = np.array(amounts, np.int64).reshape(-1, 3).T
    found = inclusive_amounts(AmountsPerStep(*columns), np.array(parent), STEPS)
    rows = list(zip(found.item.tolist(), found.step.tolist(), found.amount.tolist(), strict=True))
    assert {(thing, step): much for thing, step, much in rows if much} == {
        key: much for key, much in told.items() if much
    }
    assert len({row[:2] for row in rows}) == len(rows)
    means = mean_and_variance_over_steps(found, len(parent), STEPS).mean
    assert means.tolist() == [
        sum(told[thing, step] for step in range(STEPS)) / STEPS for thing in range(len(parent))
    ]
