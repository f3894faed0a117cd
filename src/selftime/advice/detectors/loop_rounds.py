"""Counts the rounds of a Python loop: a round may take several elements, or run an operator twice.

What runs once in each round tells: between two of it lie as many elements each time.
"""

from typing import Final

import numpy as np

from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import begins_during_intervals
from selftime.advice.detectors.source_lines import LineSlices
from selftime.analysis.slice_filters import matches_name
from selftime.analysis.source_sites import numbered_source_sites
from selftime.array_types import Flags, Ints
from selftime.names import selects_one_index
from selftime.trace import Trace

MAX_ELEMENTS_PER_ROUND: Final = 8
"""Largest number of elements that a round of a loop reads; more are a loop within it."""

MIN_SHARE_OF_ALIKE_ROUNDS: Final = 0.9
"""Smallest share of the rounds that take as many elements as most; a round may do nothing, and an
operator under a condition runs after different numbers of elements."""


def rounds_of_element_loop(trace: Trace, loop: LineSlices) -> int | None:
    """Returns how many rounds a loop over elements of tensors made; None where nothing tells."""
    operators = outermost_operators(trace)
    tracks = loop.slices["track"].unique().implode()
    operators = operators.filter(operators["track"].is_in(tracks))
    operators = operators.filter(begins_during_intervals(operators, loop.times)).sort("start", "id")
    sites = numbered_source_sites(trace, operators["id"]).number
    names = operators["name"].to_physical().to_numpy().astype(np.int64)
    kinds = np.unique(np.stack([sites, names], axis=1), axis=0, return_inverse=True)[1]
    is_element = matches_name(operators, selects_one_index)
    return rounds_by_kinds(kinds.reshape(-1), is_element)


def rounds_by_kinds(kinds: Ints, is_element: Flags) -> int | None:
    """Returns the number of rounds in which some slices ran; None where nothing tells.

    Args:
        kinds: What each slice is, such as a number for its name and line, in order of time.
        is_element: Which of them are counted: elements that are taken, or updates.

    >>> rounds_by_kinds(np.array([0, 0, 1] * 9), np.array([True, True, False] * 9))
    9
    """
    elements = int(is_element.sum())
    counted = np.cumsum(is_element, dtype=np.int64)
    order = np.argsort(kinds, kind="stable")
    starts = np.flatnonzero(np.diff(kinds[order])) + 1
    of_kinds: list[Ints] = np.split(order, starts)
    told = [(_elements_between(counted[same], elements), same[0]) for same in of_kinds]
    per_round = [
        count for count, first in told if count is not None and (count > 1 or not is_element[first])
    ]
    return -(-elements // max(per_round)) if per_round else None


def _elements_between(counted: Ints, elements: int) -> int | None:
    """Returns how many elements lie between two slices of one kind; None if not mostly as many.

    None as well where the kind runs in a part of the loop only, or after too many elements.
    """
    between = np.diff(counted)
    if between.size < 1:
        return None
    usual = int(np.median(between))
    is_alike = np.mean(between == usual) >= MIN_SHARE_OF_ALIKE_ROUNDS
    runs_on = (counted.size + 1) * usual >= MIN_SHARE_OF_ALIKE_ROUNDS * elements
    return usual if 1 <= usual <= MAX_ELEMENTS_PER_ROUND and is_alike and runs_on else None
