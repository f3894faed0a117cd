"""Which tests, and which cases of a test with many inputs, run where time is short."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import pytest

__all__ = ["sampled"]

Split: TypeAlias = tuple[list[pytest.Item], list[pytest.Item]]


def sampled(items: Sequence[pytest.Item]) -> Split:
    """The tests to run, and those to leave out.

    Of a test that is marked `sweep(n)` n cases run, from the first that is written on as far apart
    as can be, the same in every run; one that is marked `sweep` or `timed` is left out; every other
    test runs.
    """
    left = {id(item) for item in items if item.get_closest_marker("timed")}
    cases: defaultdict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep") and isinstance(item, pytest.Function):
            cases[str(item.path), item.originalname].append(item)
    left |= {id(item) for every in cases.values() for item in _left_out(every)}
    return (
        [item for item in items if id(item) not in left],
        [item for item in items if id(item) in left],
    )


def _left_out(every: list[pytest.Item]) -> list[pytest.Item]:
    marker = every[0].get_closest_marker("sweep")
    assert marker is not None
    most = min(int(marker.args[0]), len(every)) if marker.args else 0
    chosen = {number * len(every) // most for number in range(most)}
    written = sorted(every, key=_place)  # here they come in the random order in which they run
    return [item for number, item in enumerate(written) if number not in chosen]


def _place(item: pytest.Item) -> tuple[int, ...]:
    """Of a case among those of its test: the numbers of its parameters, as they are written."""
    case = getattr(item, "callspec", None)
    return tuple(case.indices.values()) if case else ()
