"""Defines the result of a bench: times of both programs, the speed-up, and all rounds."""

import json
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from math import exp
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from selftime.bench.confidence_intervals import MIN_ROUNDS_FOR_INTERVAL
from selftime.errors import UsageError
from selftime.units import milliseconds_text, rounded_json

BENCH_FORMAT: Final = "selftime.bench/1"
"""Name and version of the JSON format of a bench's result."""
_MAX_BENCH_FILE_BYTES: Final = 64 << 20
"""Largest result file that is read, in bytes; thousands of rounds take less than 1 MiB."""


class BenchMetric(str, Enum):
    """The time that a bench compares: that of a step, or of the whole process."""

    step = "step"
    """Mean time of a step after the warm-up."""
    process = "process"
    """Time of the whole program from its start to its end."""


class StopReason(str, Enum):
    """The reason why a bench ran no further rounds."""

    precise = "precise"
    """The confidence interval is as narrow as requested."""
    rounds = "rounds"
    """The maximum number of rounds was reached."""
    time = "time"
    """The time limit was reached."""
    interrupted = "interrupted"
    """The user pressed Ctrl-C."""
    failed = "failed"
    """A program failed."""


@dataclass(frozen=True, slots=True)
class EstimateWithInterval:
    """An estimated value and its 95 % confidence interval, None after too few rounds."""

    estimate: float
    low: float | None
    high: float | None


class ProgramRun(
    msgspec.Struct,
    frozen=True,
    rename={"unusual_steps": "unlike", "is_steady_by_half": "settled"},  # the keys in JSON
):
    """Times of one run of a program; `step_ms` is None if no steps were found or timed."""

    process_ms: float
    """Duration of the process from start to end, in ms."""
    step_ms: float | None = None
    """Mean time of the steady steps in ms, without warm-up and unusual steps; None if unknown."""
    all_ms: float | None = None
    """Mean time in ms of all steps after the warm-up, including unusual steps; None if unknown."""
    steps: int = 0
    """Number of steady steps: those that are neither warm-up nor unusual."""
    warm_up: int = 0
    """Number of warm-up steps, which are excluded from `step_ms` and `all_ms`."""
    unusual_steps: int = 0
    """Number of unusual steps, such as steps with an evaluation, which are excluded from
    `step_ms`."""
    is_steady_by_half: bool | None = None
    """Whether step times were steady by the middle of the run; None if unknown."""
    source: str | None = None
    """What marked the ends of steps, such as `optimizer steps`; None without steps."""
    clock: str | None = None
    """Clock that timed the steps, `host` or `device`; None without steps."""
    profiler: str | None = None
    """Name of a profiler that recorded the program and so slowed it; None if none did."""

    def time_ms(self, metric: BenchMetric) -> float | None:
        """Returns the time of a step or of the process in this run, in ms."""
        return self.step_ms if metric is BenchMetric.step else self.process_ms


@dataclass(frozen=True, slots=True)
class BenchRound:
    """One round of a bench: a run of each program, one directly after the other."""

    first: str
    """Which program ran first in the round: `before` or `after`."""
    before: ProgramRun
    after: ProgramRun


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """Median and quartiles over all rounds of one program's times, in ms."""

    program: str
    median_ms: float
    """Median over the rounds of the program's step or process time, in ms."""
    low_ms: float
    high_ms: float
    """Third quartile over the rounds of the program's time in ms; `low_ms` is the first
    quartile."""
    step_ms: float | None
    """Median over the rounds of the program's step time, in ms; None if steps are unknown."""
    all_ms: float | None
    process_ms: float


@dataclass(frozen=True, slots=True)
class Bench:
    """The result of timing two programs in turn; `speedup` is above 1 if `after` is faster."""

    metric: BenchMetric
    precision: float
    """Requested half-width of the speed-up's confidence interval, divided by the speed-up."""
    stop: StopReason
    seconds: float
    """Total duration of the bench in seconds."""
    before: ProgramTimes
    after: ProgramTimes
    speedup: EstimateWithInterval
    saved_ms: EstimateWithInterval
    """Time saved per step or process in ms, as `before` minus `after` of each round."""
    reached: float | None
    """Achieved half-width of the speed-up's confidence interval, divided by the speed-up; None
    without an interval."""
    failure: str | None
    """How a program failed, as text; None if none failed."""
    notes: tuple[str, ...]
    """One sentence for each limitation of the bench's result."""
    rounds: tuple[BenchRound, ...]
    """All counted rounds of the bench, in order of time."""

    @property
    def state(self) -> str:
        """Returns `faster` or `slower`, or `not told` if the speed-up's interval contains 1."""
        if self.speedup.low is not None and self.speedup.low > 1:
            return "faster"
        if self.speedup.high is not None and self.speedup.high < 1:
            return "slower"
        return "not told"

    @property
    def speedups_of_rounds(self) -> list[float]:
        """Returns the speed-up of each round in which both programs' times are known."""
        pairs = (
            (each.before.time_ms(self.metric), each.after.time_ms(self.metric))
            for each in self.rounds
        )
        return [before / after for before, after in pairs if before and after]

    @property
    def is_precise(self) -> bool:
        return self.stop is StopReason.precise

    def to_json(self) -> str:
        """Returns the result as one line of JSON in `BENCH_FORMAT` (see docs/formats.md).

        Floats are rounded to 6 decimals.
        """
        head = {"format": BENCH_FORMAT, "state": self.state}
        content = msgspec.to_builtins(self, enc_hook=float)  # numbers of NumPy as Python's
        return json.dumps(rounded_json({**head, **content}), allow_nan=False) + "\n"


def read_bench(file: Path) -> Bench:
    """Reads a bench result from a JSON file; raises a UsageError if the file contains none."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_BENCH_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"`{file}` cannot be read: {error.strerror}") from error
    why = "it is not a result of `selftime bench … --format json`"
    try:
        told: Any = msgspec.json.decode(content[:_MAX_BENCH_FILE_BYTES])
        if not isinstance(told, dict) or told.pop("format", None) != BENCH_FORMAT:
            raise UsageError(f"`{file}` cannot be used: {why}")
        found = msgspec.convert(told, Bench)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise UsageError(f"`{file}` cannot be used: {why}: {error}") from error
    if not found.rounds:
        raise UsageError(f"`{file}` holds no rounds; run `selftime bench` again")
    return found


_MIN_STEP_TIME_RATIO_FOR_NOTE: Final = 1.02
"""A note is added if unusual steps raise the mean step time by more than this factor."""


@dataclass(frozen=True, slots=True)
class BenchSample:
    """The completed rounds of a bench, with confidence intervals of speed-up and saved time."""

    metric: BenchMetric
    rounds: tuple[BenchRound, ...]
    times: NDArray[np.float64]
    """Times in ms, shape (rounds, 2): the first column is `before`, the second `after`."""
    log_speedup: float
    """Pseudo-median over the rounds of the logarithm of the speed-up."""
    saved_ms: float
    """Pseudo-median over the rounds of the time saved (`before` minus `after`), in ms."""
    log_speedup_interval: tuple[float, float] | None
    """95 % confidence interval of `log_speedup`; None after too few rounds."""
    saved_ms_interval: tuple[float, float] | None
    """95 % confidence interval of `saved_ms`; None after too few rounds."""
    relative_half_width: float | None
    """Half-width of the speed-up's confidence interval, divided by the speed-up; None without an
    interval."""


def summarize_bench(
    sample: BenchSample,
    labels: tuple[str, str],
    precision: float,
    stop: StopReason,
    seconds: float,
    failure: str | None,
) -> Bench:
    """Returns the result of a bench from its rounds."""
    befores = [pair.before for pair in sample.rounds]
    afters = [pair.after for pair in sample.rounds]
    low, high = sample.log_speedup_interval or (None, None)
    saved_low, saved_high = sample.saved_ms_interval or (None, None)
    return Bench(
        metric=sample.metric,
        precision=precision,
        stop=stop,
        seconds=seconds,
        before=_program_times(labels[0], sample.times[:, 0], befores),
        after=_program_times(labels[1], sample.times[:, 1], afters),
        speedup=EstimateWithInterval(
            exp(sample.log_speedup),
            None if low is None else exp(low),
            None if high is None else exp(high),
        ),
        saved_ms=EstimateWithInterval(sample.saved_ms, saved_low, saved_high),
        reached=sample.relative_half_width,
        failure=failure,
        notes=tuple(_notes_on_limitations(sample, (befores, afters))),
        rounds=sample.rounds,
    )


def _program_times(
    label: str, round_times: NDArray[np.float64], runs: list[ProgramRun]
) -> ProgramTimes:
    low, high = np.quantile(round_times, (0.25, 0.75))
    return ProgramTimes(
        program=label,
        median_ms=float(np.median(round_times)),
        low_ms=float(low),
        high_ms=float(high),
        step_ms=_median_of_known_values([run.step_ms for run in runs]),
        all_ms=_median_of_known_values([run.all_ms for run in runs]),
        process_ms=float(np.median([run.process_ms for run in runs])),
    )


def _median_of_known_values(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _notes_on_limitations(
    sample: BenchSample, runs_of_both: tuple[list[ProgramRun], list[ProgramRun]]
) -> list[str]:
    notes = []
    if len(sample.rounds) < MIN_ROUNDS_FOR_INTERVAL:
        notes.append(
            f"a 95 % interval needs {MIN_ROUNDS_FOR_INTERVAL} rounds; only {len(sample.rounds)} "
            f"{'was' if len(sample.rounds) == 1 else 'were'} run: allow more, or make the programs "
            "shorter"
        )
    if sample.metric is BenchMetric.step:
        for name, runs in zip(("before", "after"), runs_of_both, strict=True):
            notes += _notes_on_steps_of_program(name, runs)
        ways = [{(run.source, run.clock) for run in runs} for runs in runs_of_both]
        if ways[0] != ways[1]:
            told = [" and ".join(sorted(f"{s} ({c}'s clock)" for s, c in way)) for way in ways]
            notes.append(
                "the ends of steps were found from different events or clocks: "
                f"{told[0]} before, {told[1]} after; a step may not be the same work in both"
            )
    for name, runs in zip(("before", "after"), runs_of_both, strict=True):
        profiler = next((run.profiler for run in runs if run.profiler), None)
        if profiler is not None:
            notes.append(f"`{name}` is slowed by {profiler}, which recorded it at the same time")
    return notes


def _notes_on_steps_of_program(name: str, runs: list[ProgramRun]) -> list[str]:
    notes = []
    unsteady_runs = Counter(run.is_steady_by_half for run in runs)[False]
    if 2 * unsteady_runs > len(runs):
        notes.append(
            f"the steps of `{name}` were not steady half-way in {unsteady_runs} of {len(runs)} "
            "runs; make it run for longer"
        )
    step, everything = (
        _median_of_known_values([r.step_ms for r in runs]),
        _median_of_known_values([r.all_ms for r in runs]),
    )
    unusual_steps = round(float(np.median([run.unusual_steps for run in runs])))
    if unusual_steps and step and everything and everything > _MIN_STEP_TIME_RATIO_FOR_NOTE * step:
        notes.append(
            f"`{name}` makes {unusual_steps} unusual steps per run, such as those with an "
            "evaluation, which are left out; with them a step takes "
            f"{milliseconds_text(everything)} on average"
        )
    return notes
