"""Which loop of a program makes the steps if solvers make many backward passes in each round."""

from collections.abc import Callable

import pytest

pytest.importorskip("torch")

from selftime.capture.steps.pass_rounds import PassRounds
from selftime.capture.steps.repetition import call_path, call_path_hash

pytestmark = pytest.mark.torch

S = 1_000_000_000

SOLVER = """
def solve(iterations, function):
    function()
    for _ in range(iterations):
        function()
"""


class Watched:
    """Says what happens at each pass: whether rounds begin to be the steps, or a step ends."""

    def __init__(self, pass_ns: int = 1) -> None:
        self.rounds = PassRounds(lambda file: file == __file__)
        self.ends: list[str] = []
        """The passes at which a step ended, as the first of an iteration."""
        self.passes = 0
        self._pass_ns = pass_ns

    def __call__(self, name: str) -> None:
        place = call_path_hash()
        self.passes += 1
        if self.rounds.needs_path(place):
            self.rounds.add_path(place, call_path())
        if self.rounds.step_loop is not None:
            is_end = self.rounds.ends_step(place)
        else:
            is_end = self.rounds.add_pass(place, self.passes * self._pass_ns)
        if is_end:
            self.ends.append(name)


def library_solver() -> Callable[[int, Callable[[], None]], None]:
    names: dict[str, Callable[[int, Callable[[], None]], None]] = {}
    exec(compile(SOLVER, "library.py", "exec"), names)  # noqa: S102 - our own text
    return names["solve"]


def test_the_round_around_two_solvers_is_the_step() -> None:
    watched = Watched()
    for number in range(8):
        for _ in range(5 + number % 3):
            watched("value")
        watched("slope")
        for _ in range(4):
            watched("product")
            watched("curvature")
    assert watched.ends == ["value"] * 5  # two rounds show it, at the third the first one begins


def test_rounds_take_as_long_as_they_take() -> None:
    watched = Watched(pass_ns=S)
    for _ in range(6):
        for _ in range(5):
            watched("value")
        for _ in range(4):
            watched("policy")
    assert len(watched.ends) == 3


def test_passes_that_repeat_in_epochs_are_no_rounds() -> None:
    watched = Watched()
    for _ in range(6):
        for _ in range(10):
            watched("batch")
    assert watched.ends == []


def test_passes_that_alternate_are_left_to_those_who_count_them() -> None:
    watched = Watched()
    for _ in range(6):
        for _ in range(10):
            watched("judge")
            watched("maker")
    assert watched.ends == []


def test_the_programs_own_round_around_the_solver_of_a_library_is_the_step() -> None:
    watched, solve = Watched(), library_solver()
    for number in range(8):
        solve(3 + number % 4, lambda: watched("closure"))
    assert watched.ends == ["closure"] * 5


def test_a_whole_training_by_a_library_is_no_step() -> None:
    watched, solve = Watched(pass_ns=S), library_solver()
    for _ in range(6):
        solve(10, lambda: watched("batch"))
    assert watched.ends == []


def test_what_follows_the_loop_is_outside() -> None:
    watched = Watched()
    for _ in range(4):
        for _ in range(3):
            watched("value")
        for _ in range(3):
            watched("policy")
    place = call_path_hash(frames_above=0)
    watched.rounds.add_path(place, call_path(frames_above=0))
    assert watched.rounds.ends_step(place) is None
