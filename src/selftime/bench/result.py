"""Defines the result of a bench: times of both programs, the speed-up, and all rounds."""

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import msgspec

from selftime.errors import UsageError
from selftime.units import rounded_json

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


@dataclass(frozen=True, slots=True)
class ProgramRun:
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
    unlike: int = 0
    """Number of unusual steps, such as steps with an evaluation, which are excluded from
    `step_ms`."""
    settled: bool | None = None
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
    def is_precise(self) -> bool:
        return self.stop is StopReason.precise

    def to_json(self) -> str:
        """Returns the result as one line of JSON in `BENCH_FORMAT` (see docs/formats.md).

        Floats are rounded to 6 decimals.
        """
        head = {"format": BENCH_FORMAT, "state": self.state}
        return json.dumps(rounded_json({**head, **asdict(self)}), allow_nan=False) + "\n"


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
