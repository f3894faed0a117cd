"""A sample has the first case and reaches to the last; what is not marked runs whole."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.sampling import sampled


class Case(pytest.Function):
    """A case of a test, without what collects it."""

    def __init__(self, test: str, number: int, marks: dict[str, tuple[int, ...]]) -> None:
        self.path = test  # type: ignore[assignment]  # no file
        self.originalname, self.number = test, number
        self.marks = marks
        self.callspec = SimpleNamespace(indices={"case": number})  # type: ignore[assignment]  # likewise

    def get_closest_marker(self, name: str, default: Any = None) -> Any:
        return SimpleNamespace(args=self.marks[name]) if name in self.marks else default


def cases_of(count: int, marks: dict[str, tuple[int, ...]]) -> list[Case]:
    cases = [Case.__new__(Case) for _ in range(count)]
    for number, case in enumerate(cases):
        Case.__init__(case, "test", number, marks)
    return cases


def numbers(count: int, **marks: tuple[int, ...]) -> tuple[list[int], list[int]]:
    cases = cases_of(count, marks)
    run, left = sampled(cases)
    assert len(run) + len(left) == count
    return [case.number for case in run], [case.number for case in left]  # type: ignore[attr-defined]  # of our own


@pytest.mark.parametrize(
    ("count", "most", "chosen"),
    [(6, 2, [0, 3]), (7, 3, [0, 2, 4]), (3, 1, [0]), (3, 3, [0, 1, 2]), (2, 9, [0, 1])],
)
def test_cases_are_as_far_apart_as_can_be(count: int, most: int, chosen: list[int]) -> None:
    run, left = numbers(count, sweep=(most,))
    assert run == chosen
    assert sorted(run + left) == list(range(count))


def test_what_is_not_marked_runs_whole() -> None:
    assert numbers(5) == ([0, 1, 2, 3, 4], [])


@pytest.mark.parametrize("mark", ["sweep", "timed"])
def test_what_is_marked_without_a_number_is_left_out(mark: str) -> None:
    assert numbers(3, **{mark: ()}) == ([], [0, 1, 2])


def test_the_order_in_which_tests_run_changes_no_sample() -> None:
    cases = cases_of(6, {"sweep": (2,)})
    run, _ = sampled([cases[number] for number in (4, 3, 0, 5, 1, 2)])
    assert [case.number for case in run] == [3, 0]  # type: ignore[attr-defined]  # of our own
