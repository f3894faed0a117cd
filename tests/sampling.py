"""Which cases of a test that does the same to many inputs run where time is short."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import pytest

__all__ = ["sampled"]

Split: TypeAlias = tuple[list[pytest.Item], list[pytest.Item]]


def sampled(items: Sequence[pytest.Item]) -> Split:
    """The tests to run, and those to leave out.

    Of a test that is marked `sweep(n)` n cases run, from the first on as far apart as can be; every
    other test runs.
    """
    cases: defaultdict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep") and isinstance(item, pytest.Function):
            cases[str(item.path), item.originalname].append(item)
    left = {id(item) for every in cases.values() for item in _left_out(every)}
    return (
        [item for item in items if id(item) not in left],
        [item for item in items if id(item) in left],
    )


def _left_out(every: list[pytest.Item]) -> list[pytest.Item]:
    marker = every[0].get_closest_marker("sweep")
    assert marker is not None
    most = min(int(marker.args[0]), len(every))
    chosen = {number * len(every) // most for number in range(most)}
    return [item for number, item in enumerate(every) if number not in chosen]
