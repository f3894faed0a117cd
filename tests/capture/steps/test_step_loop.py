"""How long the program has spent in a loop whose iterations are steps."""

from selftime.capture.code_loops import code_loops
from selftime.capture.steps.step_loop import StepLoop


def _loop() -> None:
    for _ in range(2):
        for _ in range(2):
            pass


def followed() -> StepLoop:
    return StepLoop(code_loops(_loop.__code__)[0], began_ns=1_000)


def test_its_time_begins_before_its_first_step_is_counted() -> None:
    loop = followed()
    loop.end_iteration(1_500, is_after_gap=True, is_disturbed=True)
    assert (loop.steps, loop.time_ns) == (1, 500)


def test_a_gap_before_it_starts_again_is_none_of_its_time() -> None:
    loop = followed()
    for now, is_after_gap in ((1_100, True), (1_200, False), (9_000, True), (9_100, False)):
        loop.end_iteration(now, is_after_gap=is_after_gap, is_disturbed=False)
    assert (loop.steps, loop.time_ns) == (4, 300)


def test_work_of_selftime_between_two_iterations_is_none_of_its_time() -> None:
    loop = followed()
    loop.end_iteration(1_100, is_after_gap=True, is_disturbed=True)
    loop.resumed_ns = 5_000
    loop.end_iteration(5_100, is_after_gap=False, is_disturbed=True)
    assert loop.time_ns == 200


def test_iterations_that_a_recording_slows_down_count_as_long_as_others() -> None:
    loop = followed()
    loop.end_iteration(1_000, is_after_gap=True, is_disturbed=True)
    now = 1_000
    for took in (700, 700, 700, 9_000, 700, 700, 9_000, 700, 700, 700):
        now += took
        loop.end_iteration(now, is_after_gap=False, is_disturbed=True)
    assert loop.time_ns == 7_000  # as long as no other is known
    for _ in range(10):
        now += 100
        loop.end_iteration(now, is_after_gap=False, is_disturbed=False)
    assert loop.time_ns == 2_000


def test_its_kinds_tell_its_line() -> None:
    usual, unusual, uncounted = followed().kinds
    line = _loop.__code__.co_firstlineno + 1
    assert usual == f"iteration at test_step_loop.py:{line}"
    assert unusual == f"{usual}, unusual"
    assert uncounted not in {usual, unusual}


def test_a_jump_back_within_an_inner_loop_is_no_iteration() -> None:
    loop = followed()
    [(start, end)] = loop.inner_ranges
    assert loop.is_iteration(loop.end, loop.start)
    assert not loop.is_iteration(end, start)
