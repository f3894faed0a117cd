"""What is asked for after a loop, wherever in the cycles of a schedule the loop ends."""

import inspect
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import selftime  # noqa: E402 - after torch

pytestmark = [
    pytest.mark.torch,
    # torch says so once a process, at the second cycle of any profiler.
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
    # some of these loops end before anything is recorded, and are told so
    pytest.mark.filterwarnings("ignore:nothing was recorded:UserWarning"),
    # and some within a recording
    pytest.mark.filterwarnings("ignore:the recording was stopped after:UserWarning"),
]

HAS_ACC_EVENTS = "acc_events" in inspect.signature(torch.profiler.profile).parameters
"""Whether torch keeps the events of all cycles only if it is asked to; before, it always did."""

as_torch_since_2_5 = pytest.mark.skipif(
    not HAS_ACC_EVENTS, reason="this PyTorch's events are always those of all cycles"
)

CYCLE = {"wait": 1, "warmup": 1, "active": 3}


def step(number: int) -> None:
    """Leaves its number in a recording, as the count of one operator."""
    for _ in range(number + 1):
        torch.ones(1)


def loop(prof: Any, steps: int) -> None:
    with prof:
        for number in range(steps):
            step(number)
            prof.step()


def calls(*numbers: int) -> int:
    """Of the operator, in these steps."""
    return sum(number + 1 for number in numbers)


def ours(steps: int, **options: Any) -> Any:
    prof = selftime.profile(schedule=selftime.schedule(**CYCLE), **options)
    loop(prof, steps)
    return prof


def torchs(steps: int) -> Any:
    prof = torch.profiler.profile(schedule=torch.profiler.schedule(**CYCLE))
    loop(prof, steps)
    return prof


def found(prof: Any) -> dict[str, int]:
    return {row.key: row.count for row in prof.key_averages()}


@pytest.mark.parametrize(
    ("steps", "recorded"),
    [
        (5, [2, 3, 4]),  # exactly at the end: the next wait has begun
        (6, [2, 3, 4]),  # in the next warm-up
        (7, [2, 3, 4]),  # when the next recording has begun and holds no step
        (8, [7]),  # within it
        (9, [7, 8]),
        (10, [7, 8, 9]),
        (11, [7, 8, 9]),
        (12, [7, 8, 9]),
        (13, [12]),
        (3, [2]),  # within the first
        (4, [2, 3]),
    ],
)
@pytest.mark.sweep(5)
def test_answers_are_of_the_last_recording_with_a_whole_step(
    steps: int, recorded: list[int], tmp_path: Path
) -> None:
    prof = ours(steps)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    loaded = selftime.load(tmp_path / "trace.json")

    assert isinstance(loaded, selftime.Trace)
    assert found(prof)["aten::ones"] == calls(*recorded)
    if HAS_ACC_EVENTS:  # else `events` are torch's of all cycles
        assert sum(event.name == "aten::ones" for event in prof.events()) == calls(*recorded)
    names = {"ledger": "trace.run.jsonl"}  # the file beside each trace is named after it
    assert loaded.facts == {**prof.trace().facts, **names}
    assert loaded.slices.height == prof.trace().slices.height
    assert prof.advise().step is not None


@as_torch_since_2_5
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 8, 9, 10, 13])
@pytest.mark.sweep(4)
def test_where_torch_has_a_recording_it_is_the_same(steps: int) -> None:
    assert found(ours(steps)) == found(torchs(steps))


@pytest.mark.parametrize("steps", [5, 6, 7, 12])
def test_one_cycle_is_kept_to_the_end(steps: int) -> None:
    prof = selftime.profile(schedule=selftime.schedule(**CYCLE, repeat=1))
    loop(prof, steps)

    assert found(prof)["aten::ones"] == calls(2, 3, 4)


@pytest.mark.parametrize(("steps", "last"), [(2, 1), (3, 1), (4, 3), (5, 3), (6, 5)])
def test_cycles_without_a_wait(steps: int, last: int) -> None:
    prof = selftime.profile(schedule=selftime.schedule(wait=0, warmup=1, active=1))
    loop(prof, steps)

    assert found(prof)["aten::ones"] == calls(last)


@pytest.mark.parametrize("steps", [3, 4])
def test_cycles_without_wait_and_warm_up(steps: int) -> None:
    with pytest.warns(UserWarning, match="warmup"):
        schedule = selftime.schedule(wait=0, warmup=0, active=1)
    prof = selftime.profile(schedule=schedule)
    loop(prof, steps)

    assert found(prof)["aten::ones"] == calls(steps - 1)


@as_torch_since_2_5
@pytest.mark.parametrize("steps", range(1, 13))
@pytest.mark.sweep(5)
def test_a_handler_is_told_what_torchs_is_told(steps: int) -> None:
    told: tuple[list[dict[str, int]], list[dict[str, int]]] = ([], [])
    for kind, schedule, seen in (
        (selftime.profile, selftime.schedule, told[0]),
        (torch.profiler.profile, torch.profiler.schedule, told[1]),
    ):
        loop(
            kind(
                schedule=schedule(**CYCLE),
                on_trace_ready=lambda prof, seen=seen: seen.append(found(prof)),
            ),
            steps,
        )

    assert told[0] == told[1]


@pytest.mark.parametrize(("steps", "recorded"), [(5, [2, 3, 4]), (6, [2, 3, 4]), (8, [7])])
def test_beside_a_handler_answers_are_the_same(steps: int, recorded: list[int]) -> None:
    prof = ours(steps, on_trace_ready=lambda _: None)

    assert found(prof)["aten::ones"] == calls(*recorded)


@as_torch_since_2_5
def test_beside_a_handler_a_recording_is_dropped_when_the_next_begins() -> None:
    prof = ours(7, on_trace_ready=lambda _: None)

    assert found(prof) == found(torchs(7)) == {"ProfilerStep*": 1}


def test_a_loop_that_breaks_within_a_step_keeps_the_whole_recording() -> None:
    prof = selftime.profile(schedule=selftime.schedule(**CYCLE))

    def broken() -> None:
        with prof:
            for number in range(8):
                step(number // (number < 7))
                prof.step()

    with pytest.raises(ZeroDivisionError):
        broken()

    assert found(prof)["aten::ones"] == calls(2, 3, 4)
    assert prof.trace().facts["partial"] is None


def test_the_facts_are_of_the_recording_that_is_kept() -> None:
    prof = ours(6, with_stack=True)
    facts = prof.trace().facts
    shorter = ours(5, with_stack=True).trace().facts

    assert facts["usage"]["wall_s"] > 0
    assert facts["ops"].keys() == shorter["ops"].keys()
    assert len(facts["lines"]["id"]) > 0
    assert {len(column) for column in facts["ops"].values()} == {
        len(column) for column in shorter["ops"].values()
    }


def test_a_profiler_that_is_started_again_tells_of_the_new_recording() -> None:
    prof = selftime.profile(schedule=lambda _: torch.profiler.ProfilerAction.RECORD)
    prof.start()
    step(0)
    prof.step()
    prof.stop()
    prof.start()
    step(4)
    prof.stop()

    assert found(prof)["aten::ones"] == calls(4)


@as_torch_since_2_5
def test_accumulated_events_stay_torchs() -> None:
    prof = ours(6, acc_events=True)

    assert found(prof)["aten::ones"] == calls(2, 3, 4)
    assert prof.trace().view("operators").height > 1
