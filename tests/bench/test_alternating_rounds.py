"""The order of the runs, what stops them, and what is left where something goes wrong."""

import json
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from selftime.bench import Bench, BenchedProgram, Limits, bench
from selftime.bench.program_runs import RunOutcome
from selftime.bench.result import BenchMetric, StopReason, read_bench
from selftime.capture.timing.step_times import StepTimes
from selftime.errors import SelftimeError, UsageError
from selftime.reports.bench import as_markdown, as_text, bench_headline

BEFORE, AFTER = BenchedProgram(("before.py",)), BenchedProgram(("after.py", "--fast"))
STEP_MS = {"before.py": 20.0, "after.py": 10.0}


@dataclass
class Machine:
    """Runs programs in no time on a clock of its own; a step takes what `STEP_MS` says."""

    noise: float = 0.005
    drift: float = 0.0
    """By how much each run is slower than the one before."""
    steps: int = 40
    now: float = 0.0
    ran: list[str] = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    wrong: Callable[[int, RunOutcome], RunOutcome] = field(default=lambda _, ended: ended)
    """What happens to a run, by its number."""
    facts: dict[str, object] = field(default_factory=dict)
    step_ms: dict[str, float] = field(default_factory=lambda: dict(STEP_MS))

    def clock(self) -> float:
        return self.now

    def run(self, program: BenchedProgram, *, timed: bool, seconds: float | None) -> RunOutcome:
        name = program.words[0]
        speed = (1 + self.drift) ** len(self.ran) * np.exp(self.rng.normal(0, self.noise))
        self.ran.append(name)
        step = self.step_ms[name] * speed
        took = 1.0 + self.steps * step / 1e3
        times = StepTimes(
            process=1,
            rank=None,
            source="optimizer steps",
            is_device_clock=False,
            profiler=None,
            is_truncated=False,
            durations=array("q", [round(step * 1e6)] * self.steps),
            unusual=bytes(self.steps),
        )
        steps = (replace(times, **self.facts),) if timed and self.steps else ()  # type: ignore[arg-type]  # as the class declares them
        is_late = seconds is not None and took > seconds
        self.now += min(took, seconds) if seconds is not None else took
        ended = RunOutcome(-15 if is_late else 0, took, is_late, "", steps)
        return self.wrong(len(self.ran), ended)

    def bench(self, metric: BenchMetric | None = None, **limits: float) -> Bench:
        given = Limits(**limits)  # type: ignore[arg-type]  # whole where it counts
        return bench(BEFORE, AFTER, metric=metric, limits=given, run=self.run, clock=self.clock)


def test_the_speed_up_is_that_of_steps() -> None:
    found = Machine().bench()
    assert (found.metric, found.stop, found.state) == (
        BenchMetric.step,
        StopReason.precise,
        "faster",
    )
    assert found.speedup.estimate == pytest.approx(2, rel=0.01)
    assert found.speedup.low is not None
    assert found.speedup.high is not None
    assert found.speedup.low <= 2 <= found.speedup.high
    assert found.saved_ms.estimate == pytest.approx(10, rel=0.02)
    assert found.before.median_ms == pytest.approx(20, rel=0.01)
    assert len(found.rounds) == 8
    assert found.notes == ()


def test_programs_take_turns_and_the_first_round_is_not_counted() -> None:
    machine = Machine()
    found = machine.bench()
    a, b = "before.py", "after.py"
    assert machine.ran == [a, b, *[a, b, b, a] * 4]
    assert [one.first for one in found.rounds] == ["before", "after"] * 4


def test_a_machine_that_gets_slower_favours_neither() -> None:
    found = Machine(noise=0.0, drift=0.02, step_ms=dict.fromkeys(STEP_MS, 10.0)).bench(rounds=8)
    assert found.state == "not told"
    assert found.speedup.estimate == pytest.approx(1, abs=0.002)


def test_it_goes_on_until_it_is_precise() -> None:
    found = Machine(noise=0.02).bench(precision=0.02)
    assert found.stop is StopReason.precise
    assert len(found.rounds) in {12, 16, 24, 32}
    assert found.reached is not None
    assert found.reached <= 0.02


def test_noise_ends_with_all_rounds_and_says_how_many_would_do() -> None:
    found = Machine(noise=0.5).bench(rounds=8)
    assert found.stop is StopReason.rounds
    assert found.reached is not None
    assert found.reached > 0.02
    text = as_text(found)
    assert "times on this machine vary too much" in text
    assert max(map(len, text.splitlines())) <= 80


def test_time_that_is_up_leaves_what_was_measured() -> None:
    machine = Machine()
    found = machine.bench(seconds=24.0)
    assert found.stop is StopReason.time
    assert 6 <= len(found.rounds) < 8
    assert machine.now <= 24.0
    assert found.speedup.low is not None


def test_too_few_rounds_have_no_interval_and_say_so() -> None:
    found = Machine().bench(seconds=10.0)
    assert 0 < len(found.rounds) < 6
    assert found.speedup.low is None
    assert found.state == "not told"
    assert "a 95 % interval needs" in found.notes[0]
    text = as_text(found, width=200)
    assert "interval unknown" in text
    count, ratios = len(found.rounds), found.speedups_of_rounds
    assert bench_headline(found) == (
        f"Not sure: {found.speedup.estimate:.3f} times as fast, from {min(ratios):.3f} to "
        f"{max(ratios):.3f} in each round; {count} rounds do not suffice for an interval, 6 are "
        "needed"
    )
    assert "No clear difference" not in text


def test_time_that_is_up_before_a_round_is_an_error() -> None:
    with pytest.raises(SelftimeError, match="reached before a round was complete; allow more"):
        Machine().bench(seconds=4.0)


def failing(at: int) -> Callable[[int, RunOutcome], RunOutcome]:
    def wrong(number: int, ended: RunOutcome) -> RunOutcome:
        return (
            replace(ended, status=1, last_stderr_line="ValueError: bad") if number == at else ended
        )

    return wrong


def test_a_program_that_fails_at_once_is_an_error_with_its_last_line() -> None:
    with pytest.raises(SelftimeError, match=r"`after.py --fast` ended with .* ValueError: bad"):
        Machine(wrong=failing(2)).bench()


def test_a_program_that_fails_later_loses_nothing() -> None:
    found = Machine(wrong=failing(2 + 2 * 6 + 1)).bench()
    assert found.stop is StopReason.failed
    assert len(found.rounds) == 6
    assert found.failure is not None
    assert "ValueError: bad" in found.failure
    assert found.speedup.low is not None


def test_interrupted_it_tells_what_was_measured() -> None:
    def interrupt(number: int, ended: RunOutcome) -> RunOutcome:
        if number > 2 + 2 * 7:
            raise KeyboardInterrupt
        return ended

    found = Machine(wrong=interrupt).bench()
    assert (found.stop, len(found.rounds)) == (StopReason.interrupted, 7)
    with pytest.raises(KeyboardInterrupt):
        Machine(wrong=lambda number, _: interrupt(99 * number, _)).bench()


def test_without_steps_the_whole_process_is_timed() -> None:
    found = Machine(steps=0).bench(rounds=8)
    assert found.metric is BenchMetric.process
    assert found.before.step_ms is None
    assert "whole process" in as_text(found)


def test_steps_that_are_asked_for_and_not_there_are_an_error() -> None:
    with pytest.raises(SelftimeError, match="makes too few recognisable steps"):
        Machine(steps=3).bench(BenchMetric.step)


def test_asked_for_processes_are_left_alone() -> None:
    watched = []
    machine = Machine()

    def run(program: BenchedProgram, *, timed: bool, seconds: float | None) -> RunOutcome:
        watched.append(timed)
        return machine.run(program, timed=timed, seconds=seconds)

    bench(BEFORE, AFTER, metric=BenchMetric.process, run=run, clock=machine.clock)
    assert not any(watched)


def test_a_program_that_records_itself_is_told() -> None:
    found = Machine(facts={"profiler": "the program's own profiler"}).bench()
    assert any("slowed by the program's own profiler" in note for note in found.notes)


def test_json_comes_back_as_it_was_written(tmp_path: Path) -> None:
    found = Machine().bench()
    file = tmp_path / "bench.json"
    file.write_text(found.to_json())
    read = read_bench(file)
    assert read.to_json() == found.to_json()
    assert json.loads(found.to_json())["format"] == "selftime.bench/1"
    assert Machine().bench().to_json() == found.to_json()


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    for content in ("", "[]", '{"format": "selftime.check/1"}', '{"format": "selftime.bench/1"}'):
        file.write_text(content)
        with pytest.raises(UsageError, match="cannot be used"):
            read_bench(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_bench(tmp_path / "nonesuch")


def test_markdown_quotes_what_programs_are_called() -> None:
    machine = Machine(step_ms={**STEP_MS, "a|b.py": 20.0})
    odd = BenchedProgram(("a|b.py", "<b>\x1b[31m"))
    found = bench(odd, AFTER, run=machine.run, clock=machine.clock)
    page = as_markdown(found)
    assert "\x1b" not in page
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert len(table) == 4
    assert page.startswith("**Faster: ")


def test_words_are_those_of_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text("")
    assert BenchedProgram.from_command_line("-m pkg.train --a 'b c'").words == (
        "-m",
        "pkg.train",
        "--a",
        "b c",
    )
    assert BenchedProgram.from_command_line("train.py").command == [sys.executable, "train.py"]
    assert BenchedProgram.from_command_line("sh -c true").command == ["sh", "-c", "true"]
    for text in ("", "-m", "--workers 4", "nonesuch.py", "a 'b"):
        with pytest.raises(UsageError):
            BenchedProgram.from_command_line(text)
