"""When a recording begins, and how many steps it covers."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from selftime.capture.recorder.recording_plan import (
    MAX_STEPS_UNTIL_STEADY,
    MeasuredHold,
    RecordingBudget,
    StepEvents,
    are_steps_steady,
)
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.step_sample import StepSample

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

MS = 1_000_000


@pytest.mark.parametrize(
    "durations",
    [[], [10], [100, 50], [100, 50, 30, 20], [10, 10, 40], [10, 9, 40]],
    ids=["nothing", "alone", "faster", "faster and faster", "compiled again", "a late surprise"],
)
def test_steps_that_still_change_are_let_pass(durations: list[int]) -> None:
    assert not are_steps_steady([duration * MS for duration in durations])


@pytest.mark.parametrize(
    "durations",
    [[10, 10], [900, 100, 50, 52], [10, 40, 11], [10, 9, 40, 10]],
    ids=["alike", "after a warm-up", "after a pause", "after a surprise"],
)
def test_a_step_like_the_shortest_before_it_is_steady(durations: list[int]) -> None:
    assert are_steps_steady([duration * MS for duration in durations])


def test_a_program_that_never_settles_is_not_waited_for() -> None:
    halving = [2 ** (33 - step) for step in range(MAX_STEPS_UNTIL_STEADY)]

    assert not are_steps_steady(halving[:-1])
    assert are_steps_steady(halving)
    assert are_steps_steady([31_000 * MS])


@pytest.mark.parametrize("events", [1, 1_000, 10_000, 30_000, 60_000])
def test_the_end_of_a_recording_holds_the_program_no_longer_than_it_may(events: int) -> None:
    budget = RecordingBudget(RunOptions(active=5), StepEvents(events))
    assert budget.steps * budget.pause_ns <= 1e9
    assert (budget.steps + 1) * budget.pause_ns > 1e9 or budget.steps == 5


@pytest.mark.parametrize(
    ("events", "options", "free", "left_out"),
    [
        (StepEvents(130_000), RunOptions(active=5), None, {"shapes": "--hold 11"}),
        (StepEvents(1_000), RunOptions(active=5), None, {}),
        (StepEvents(60_000), RunOptions(active=5), 10**9, {"shapes": None}),
        (
            StepEvents(60_000, 50_000),
            RunOptions(active=1, max_bytes=20_000_000),
            None,
            {"stacks": "--max-bytes 27000000"},
        ),
    ],
)
def test_what_is_left_out_is_recorded_with_the_option_that_is_told(
    events: StepEvents, options: RunOptions, free: int | None, left_out: dict[str, str | None]
) -> None:
    assert RecordingBudget(options, events, free).left_out() == left_out
    for name in filter(None, left_out.values()):
        option, value = name.removeprefix("--").replace("-", "_").split()
        sufficient = replace(options, **{option: type(getattr(options, option))(value)})
        assert RecordingBudget(sufficient, events, free).left_out() == {}


def test_steps_that_ranks_are_compared_by_are_worth_more_than_frames() -> None:
    events = StepEvents(100_000, 95_000)
    alone = RecordingBudget(RunOptions(active=5), events)
    in_job = RecordingBudget(RunOptions(active=5), events, least_steps=4)
    assert (alone.steps, alone.details.frames) == (1, True)
    assert (in_job.steps, in_job.details.frames, in_job.details.shapes) == (5, False, True)
    asked_for_one = RecordingBudget(RunOptions(active=1), events, least_steps=4)
    assert (asked_for_one.steps, asked_for_one.details.frames) == (1, True)


def test_one_step_may_hold_for_twice_as_long_as_asked() -> None:
    budget = RecordingBudget(RunOptions(active=5), StepEvents(100_000, 50_000))
    assert (budget.steps, budget.details.shapes, budget.details.frames) == (1, True, True)
    message = budget.limits_message() or ""
    assert "holds the program for about" in message
    assert message.endswith("so 1 of 5 steps is recorded; allow more with --hold")


@pytest.mark.parametrize(
    ("events", "frames", "steps", "shapes", "with_frames", "window"),
    [
        (10_000, 5_000, 5, True, True, False),
        (13_000, 6_500, 4, True, True, False),
        (20_000, 10_000, 3, True, True, False),
        (21_000, 10_500, 2, True, True, False),
        (47_000, 23_500, 1, True, True, False),
        (62_000, 31_000, 1, True, True, False),
        (90_000, 45_000, 1, True, True, False),
        (100_000, 50_000, 1, True, True, False),
        (200_000, 100_000, 1, False, True, False),
        (400_000, 200_000, 1, False, False, False),
        (1_000_000, 500_000, 1, False, False, True),
    ],
)
def test_larger_steps_lose_steps_then_shapes_then_lines_then_their_end(
    events: int, frames: int, steps: int, shapes: bool, with_frames: bool, window: bool
) -> None:
    budget = RecordingBudget(RunOptions(active=5, profile_memory=True), StepEvents(events, frames))

    assert budget.steps == steps
    assert (budget.details.shapes, budget.details.frames) == (shapes, with_frames)
    assert budget.details.memory == shapes
    assert budget.is_window == window
    message = budget.limits_message() or ""
    assert ("shapes" in message) == (not shapes)
    assert ("source lines" in message) == (not with_frames)
    assert ("only its first" in message) == window
    assert message.count("; ") == (events > 10_000)


def test_allocations_are_given_up_before_shapes() -> None:
    options = RunOptions(active=5, profile_memory=True)
    budget = RecordingBudget(options, StepEvents(24_000, 10_000, allocations=9_000))
    assert (budget.steps, budget.details.memory, budget.details.shapes) == (4, False, True)
    assert budget.limits_message() == (
        "a step makes about 10.3 MiB of trace, and 5 steps would hold the program for about "
        "1.9 s with all details, so 4 of 5 steps are recorded without allocations; allow more "
        "with --hold"
    )


def test_shapes_are_worth_more_than_steps() -> None:
    large = RecordingBudget(RunOptions(active=1), StepEvents(110_000, 50_000))
    assert (large.steps, large.details.shapes, large.details.frames) == (1, True, True)
    few = RecordingBudget(RunOptions(active=2), StepEvents(50_000, 25_000))
    assert (few.steps, few.details.shapes, few.details.frames) == (1, True, True)
    assert few.left_out() == {}
    assert few.limits_message() == (
        "a step makes about 21.5 MiB of trace and holds the program for about 800 ms when "
        "the recording ends, so 1 of 2 steps is recorded; allow more with --hold"
    )


def test_frames_are_never_given_up_for_more_steps() -> None:
    """Two steps and more would fit without them, and one with shapes."""
    for frames in (70_000, 100_000):
        budget = RecordingBudget(RunOptions(active=5), StepEvents(130_000, frames))
        assert (budget.steps, budget.details.frames) == (1, True)
        message = budget.limits_message() or ""
        without = "so 1 of 5 steps is recorded without shapes; allow more with --hold"
        assert message.endswith(without)


def test_the_limit_of_size_gives_up_steps_and_at_last_frames() -> None:
    options = RunOptions(active=5, hold=60, max_bytes=10_000_000)
    budget = RecordingBudget(options, StepEvents(10_000, 5_000))
    assert (budget.steps, budget.details.shapes, budget.details.frames) == (2, True, True)
    message = budget.limits_message() or ""
    assert message.endswith("so 2 of 5 steps are recorded; allow more with --max-bytes")
    large = RecordingBudget(options, StepEvents(30_000, 15_000))
    assert (large.steps, large.details.shapes, large.details.frames) == (1, True, False)
    message = large.limits_message() or ""
    assert "without Python frames and source lines; allow more with --max-bytes" in message


def test_little_memory_gives_up_steps_before_shapes() -> None:
    options = RunOptions(active=5, hold=60)
    budget = RecordingBudget(options, StepEvents(10_000, 5_000), 500 << 20)
    assert (budget.steps, budget.details.shapes, budget.details.frames) == (2, True, True)
    message = budget.limits_message() or ""
    assert message.endswith("and 2 of 5 steps are recorded: more do not fit into memory")

    larger = RecordingBudget(options, StepEvents(30_000, 15_000), 500 << 20)
    assert (larger.steps, larger.details.shapes, larger.details.frames) == (1, False, True)
    message = larger.limits_message() or ""
    assert "5 steps would not fit into a fourth of the free memory" in message
    assert message.endswith("so 1 of 5 steps is recorded without shapes")


@pytest.mark.parametrize(("ratio", "steps"), [(0.5, 4), (1.0, 2), (2.0, 1)])
def test_the_hold_is_that_which_was_measured_in_this_program(ratio: float, steps: int) -> None:
    hold = MeasuredHold(pause_ratio=ratio)
    budget = RecordingBudget(RunOptions(active=5), StepEvents(30_000), hold=hold)
    assert (budget.steps, budget.details.shapes) == (steps, True)
    assert budget.pause_ns == int(30_000 * 16_000 * ratio)


@pytest.mark.parametrize(("held_ms", "steps"), [(0, 5), (500, 3), (900, 1), (5_000, 1)])
def test_what_earlier_recordings_held_is_not_left_for_later_ones(held_ms: int, steps: int) -> None:
    hold = MeasuredHold(held_ns=held_ms * MS)
    budget = RecordingBudget(RunOptions(active=5), StepEvents(10_000), hold=hold)
    assert (budget.steps, budget.left_out()) == (steps, {})


def test_the_option_that_is_told_allows_for_what_is_held_before() -> None:
    hold = MeasuredHold(held_ns=900 * MS)
    budget = RecordingBudget(RunOptions(active=5), StepEvents(130_000), hold=hold)
    assert budget.left_out() == {"shapes": "--hold 12"}
    sufficient = RecordingBudget(RunOptions(active=5, hold=12), StepEvents(130_000), hold=hold)
    assert (sufficient.steps, sufficient.left_out()) == (5, {})


@pytest.mark.parametrize("events", [1, 70_000, 300_000, 1_000_000, 100_000_000])
@pytest.mark.parametrize("free", [10 << 20, 1 << 30, None])
def test_a_recording_stays_within_memory_and_hold(events: int, free: int | None) -> None:
    options = RunOptions(active=5)
    budget = RecordingBudget(options, StepEvents(events), free)
    limit = budget.event_limit(step_ns=1e6)

    if free is not None:
        assert limit.max_events * budget.details.peak_bytes_per_event <= free / 4
    held = limit.max_events * budget.details.pause_ns_per_event
    assert held <= 2 * max(options.hold * 1e9, budget.steps * events * 16_000)
    assert held <= 4e9


def test_too_little_memory_is_named() -> None:
    message = RecordingBudget(RunOptions(), StepEvents(100_000), 100 << 20).limits_message() or ""
    assert "more than fits into a fourth of the free memory" in message
    assert "only its first 10,485 events are recorded without shapes" in message


def sample(events: int, duration_ms: int, *, is_cut: bool) -> StepSample:
    return StepSample(StepEvents(events, events // 2), duration_ms * MS, is_cut)


def test_a_step_of_which_the_beginning_is_known_has_the_more_events_the_longer_it_takes() -> None:
    cut = sample(50_000, 100, is_cut=True)
    assert cut.recording_budget(RunOptions(), [2_000 * MS], None).is_window
    whole = sample(50_000, 100, is_cut=False)
    assert not whole.recording_budget(RunOptions(), [2_000 * MS], None).is_window


def test_a_first_step_with_an_evaluation_in_it_says_little_of_others() -> None:
    first = sample(1_000_000, 10_000, is_cut=False)
    assert first.recording_budget(RunOptions(), [10 * MS, 10 * MS], None).steps == 5


def test_what_fits_needs_no_word() -> None:
    assert RecordingBudget(RunOptions(active=5), StepEvents(1_000)).limits_message() is None


def test_fewer_steps_because_of_their_size_name_the_other_option() -> None:
    budget = RecordingBudget(RunOptions(active=5, max_bytes=10_000_000), StepEvents(10_000))
    message = budget.limits_message() or ""
    assert message.endswith("so 2 of 5 steps are recorded; allow more with --max-bytes")


def test_a_longer_hold_allows_more() -> None:
    step = StepEvents(45_000)
    assert RecordingBudget(RunOptions(active=5), step).steps == 1
    assert RecordingBudget(RunOptions(active=5, hold=4), step).steps == 5


@pytest.mark.torch
@pytest.mark.timed
def test_recording_begins_after_the_warm_up(record: "Runner") -> None:
    outcome = record(
        """
        import time
        import torch
        from torch import nn

        net = nn.Linear(16, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(40):
            with torch.profiler.record_function(f"number {step}"):
                time.sleep(1 / 2**step if step < 5 else 0.01)
            net(torch.randn(8, 16)).sum().backward()
            optimizer.step()
        """,
        warmup=None,
    )

    assert outcome.result["steps_recorded"] == 5
    assert outcome.facts["partial"] is None
    first, *_ = (int(row["name"].split()[1]) for row in outcome.rows("number "))
    assert first >= 6  # those before are each half as long as the one before
    assert len(outcome.facts["steps"]["unprofiled_ns"]) >= 2 + 5
