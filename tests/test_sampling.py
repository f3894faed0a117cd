"""A sample has the first case and reaches to the last; what is not marked runs whole."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.sampling import sampled


class Case(pytest.Function):
    """A case of a test, without what collects it."""

    def __init__(self, test: str, number: int, most: int | None) -> None:
        self.path = test  # type: ignore[assignment]  # no file
        self.originalname, self.number = test, number
        self.most = most

    def get_closest_marker(self, name: str, default: Any = None) -> Any:
        is_marked = name == "sweep" and self.most is not None
        return SimpleNamespace(args=(self.most,)) if is_marked else default


def numbers(count: int, most: int | None) -> tuple[list[int], list[int]]:
    cases = [Case.__new__(Case) for _ in range(count)]
    for number, case in enumerate(cases):
        Case.__init__(case, "test", number, most)
    run, left = sampled(cases)
    assert len(run) + len(left) == count
    return [case.number for case in run], [case.number for case in left]  # type: ignore[attr-defined]  # of our own


@pytest.mark.parametrize(
    ("count", "most", "chosen"),
    [(6, 2, [0, 3]), (7, 3, [0, 2, 4]), (3, 1, [0]), (3, 3, [0, 1, 2]), (2, 9, [0, 1])],
)
def test_cases_are_as_far_apart_as_can_be(count: int, most: int, chosen: list[int]) -> None:
    run, left = numbers(count, most)
    assert run == chosen
    assert sorted(run + left) == list(range(count))


def test_what_is_not_marked_runs_whole() -> None:
    assert numbers(5, None) == ([0, 1, 2, 3, 4], [])
