"""Which of the loops that a program is in makes its steps."""

from typing import Final

from selftime.capture.code_loops import code_loops
from selftime.capture.steps.loop_choice import (
    LONG_ITERATION_NS,
    MAX_CHOICE_NS,
    IteratedLoop,
    choose_step_loop,
)

MS: Final = 1_000_000


def _two_loops() -> None:
    for _ in range(2):
        for _ in range(2):
            pass


OUTER, INNER = code_loops(_two_loops.__code__)


def chosen(outer_ms: float, inner_ms: float, elapsed_ms: float) -> str | None:
    """The choice after so long, where iterations of both loops take that long."""
    counted = []
    for loop, each in ((OUTER, outer_ms), (INNER, inner_ms)):
        one = IteratedLoop(loop)
        for number in range(1, int(elapsed_ms / each) + 1):
            one.count_iteration(int(number * each * MS))
        counted.append(one)
    found = choose_step_loop(counted, 0, int(elapsed_ms * MS))
    return None if found is None else "outer" if found.loop is OUTER else "inner"


def test_the_outer_loop_makes_the_steps_where_it_repeats_often() -> None:
    assert chosen(outer_ms=8, inner_ms=1, elapsed_ms=20) is None
    assert chosen(outer_ms=8, inner_ms=1, elapsed_ms=70) is None  # the inner one is not due
    assert chosen(outer_ms=8, inner_ms=1, elapsed_ms=90) == "outer"


def test_the_batches_make_the_steps_and_not_the_epochs() -> None:
    assert chosen(outer_ms=5_000, inner_ms=10, elapsed_ms=100) is None
    assert chosen(outer_ms=5_000, inner_ms=10, elapsed_ms=LONG_ITERATION_NS / MS + 1) == "inner"


def test_slow_iterations_make_the_steps_where_nothing_repeats_faster() -> None:
    assert chosen(outer_ms=60_000, inner_ms=1_000, elapsed_ms=2_500) is None
    assert chosen(outer_ms=60_000, inner_ms=1_000, elapsed_ms=MAX_CHOICE_NS / MS + 500) == "inner"


def test_nothing_is_chosen_where_nothing_repeats() -> None:
    assert chosen(outer_ms=60_000, inner_ms=50_000, elapsed_ms=10_000) is None
