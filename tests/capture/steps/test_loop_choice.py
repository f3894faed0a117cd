"""Which of the loops that a program is in makes its steps."""

from typing import Final

from selftime.capture.code_loops import CodeLoop, code_loops
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
    assert choose_step_loop([], 0, 10_000 * MS) is None
    assert chosen(outer_ms=60_000, inner_ms=50_000, elapsed_ms=10_000) is None


def entered(loop: CodeLoop, entries: int, iterations: int, each_ms: int) -> IteratedLoop:
    """A loop that started so often, has ended each time, and made so many iterations each time."""
    counted = IteratedLoop(loop)
    now = 0
    for _ in range(entries):
        for _ in range(iterations):
            now += each_ms
            counted.count_iteration(now * MS)
        counted.end_entry()
    return counted


def slow(loop: CodeLoop, iterations: int, each_ms: int) -> IteratedLoop:
    """A loop that goes on, and was in its first iteration when the count began."""
    counted = IteratedLoop(loop)
    for number in range(1, iterations + 1):
        counted.count_iteration(number * each_ms * MS)
    return counted


def test_five_epochs_are_not_waited_for() -> None:
    epochs, batches = IteratedLoop(OUTER, known_iterations=5), slow(INNER, 10, 10)
    found = choose_step_loop([epochs, batches], 0, 100 * MS)
    assert found is not None
    assert found.loop is INNER
    unknown = [IteratedLoop(OUTER), batches]
    assert choose_step_loop(unknown, 0, 100 * MS) is None  # they may be many, and short


def test_the_batches_make_the_steps_once_the_epochs_have_ended() -> None:
    epochs, batches = entered(OUTER, 1, 5, 100), entered(INNER, 5, 20, 5)
    found = choose_step_loop([epochs, batches], 0, 500 * MS)
    assert found is not None
    assert found.loop is INNER


def test_iterations_before_the_count_are_estimated() -> None:
    """Of twenty that took 10 ms each, eight were counted."""
    counted = IteratedLoop(OUTER, began_ns=10 * MS)
    for number in range(13, 21):
        counted.count_iteration(number * 10 * MS)
    counted.end_entry()
    assert counted.most_iterations == 20
    assert not counted.ends_soon


def test_axes_make_no_steps_however_many_time_steps_there_are() -> None:
    time_steps, axes = slow(OUTER, 4, 400), entered(INNER, 5, 3, 130)
    found = choose_step_loop([time_steps, axes], 0, 1_950 * MS)
    assert found is not None
    assert found.loop is OUTER


def test_a_loop_that_ends_soon_makes_the_steps_where_there_is_no_other() -> None:
    found = choose_step_loop([slow(OUTER, 3, 200)], 0, 700 * MS)
    assert found is None
    known = slow(OUTER, 3, 200)
    known.known_iterations = 6
    assert choose_step_loop([known], 0, 700 * MS) is known
