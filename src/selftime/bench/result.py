"""The result of a bench: the time of each program, the speed-up, and all rounds."""

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import msgspec

from selftime.errors import UsageError
from selftime.units import rounded

FORMAT: Final = "selftime.bench/1"
"""Name and version of the JSON format."""
_LARGEST: Final = 64 << 20
"""The largest file that is read, in bytes: thousands of rounds take less than one MiB."""


class Metric(str, Enum):
    """What is timed: a step or the whole process."""

    step = "step"
    """A steady step, after the warm-up."""
    process = "process"
    """The whole program, from its start to its end."""


class Stop(str, Enum):
    """The reason why the rounds ended."""

    precise = "precise"
    """The interval is as narrow as requested."""
    rounds = "rounds"
    """The maximum number of rounds was reached."""
    time = "time"
    """The time limit was reached."""
    interrupted = "interrupted"
    """The user pressed Ctrl-C."""
    failed = "failed"
    """A program failed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """An estimate with its 95 % interval, which is None after too few rounds."""

    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a program; `step_ms` is None if it made no steps or steps were not timed."""

    process_ms: float
    """Time from start to end, in ms."""
    step_ms: float | None = None
    """The mean time of its steady steps, in ms."""
    all_ms: float | None = None
    """The mean time of all steps after the warm-up, including unusual ones, in ms."""
    steps: int = 0
    """The number of steady steps."""
    warm_up: int = 0
    """The number of warm-up steps, which are left out."""
    unlike: int = 0
    """The number of unusual steps, such as those with an evaluation, which are left out."""
    settled: bool | None = None
    """Whether steps were steady by the middle of the run."""
    source: str | None = None
    """The event that marks the end of a step."""
    clock: str | None = None
    """The clock that timed the steps: `host` or `device`."""
    profiler: str | None = None
    """The profiler that recorded the program, although it should run unprofiled."""

    def of(self, metric: Metric) -> float | None:
        """Returns the time of this metric, in ms."""
        return self.step_ms if metric is Metric.step else self.process_ms


@dataclass(frozen=True, slots=True)
class Round:
    """One run of each program, one directly after the other."""

    first: str
    """The program that ran first: `before` or `after`."""
    before: Run
    after: Run


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """The times of one program over all rounds."""

    program: str
    median_ms: float
    """The median of the compared metric, in ms."""
    low_ms: float
    high_ms: float
    """First and third quartile of the rounds, in ms."""
    step_ms: float | None
    """The median step time of the rounds, in ms; None if steps are unknown."""
    all_ms: float | None
    process_ms: float


@dataclass(frozen=True, slots=True)
class Bench:
    """Two programs timed in turn; `speedup` is above 1 if `after` is faster."""

    metric: Metric
    precision: float
    """The requested half-width of the interval, as a share of the speed-up."""
    stop: Stop
    seconds: float
    """The duration of the bench, in seconds."""
    before: ProgramTimes
    after: ProgramTimes
    speedup: Bounds
    saved_ms: Bounds
    """Time saved per step or process in ms: `before` minus `after`, pair by pair."""
    reached: float | None
    """The achieved half-width of the interval, as a share of the speed-up."""
    failure: str | None
    """How a program failed; None if none did."""
    notes: tuple[str, ...]
    """Limitations of the result, one sentence each."""
    rounds: tuple[Round, ...]
    """The rounds in order."""

    @property
    def state(self) -> str:
        """`faster` or `slower` if the interval excludes 1; else `not told`, meaning unclear."""
        if self.speedup.low is not None and self.speedup.low > 1:
            return "faster"
        if self.speedup.high is not None and self.speedup.high < 1:
            return "slower"
        return "not told"

    @property
    def is_precise(self) -> bool:
        return self.stop is Stop.precise

    def to_json(self) -> str:
        """`FORMAT` (docs/formats.md): one line, floats rounded to 6 decimals."""
        head = {"format": FORMAT, "state": self.state}
        return json.dumps(rounded({**head, **asdict(self)}), allow_nan=False) + "\n"


def read_bench(file: Path) -> Bench:
    """Returns the bench that `to_json` wrote; raises a UsageError for any other file."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"`{file}` cannot be read: {error.strerror}") from error
    why = "it is not a result of `selftime bench … --format json`"
    try:
        told: Any = msgspec.json.decode(content[:_LARGEST])
        if not isinstance(told, dict) or told.pop("format", None) != FORMAT:
            raise UsageError(f"`{file}` cannot be used: {why}")
        found = msgspec.convert(told, Bench)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise UsageError(f"`{file}` cannot be used: {why}: {error}") from error
    if not found.rounds:
        raise UsageError(f"`{file}` holds no rounds; run `selftime bench` again")
    return found
