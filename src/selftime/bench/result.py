"""What a bench found: how long each program takes, the speed-up, and what it was told from."""

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import msgspec

from selftime.errors import UsageError
from selftime.units import rounded

FORMAT: Final = "selftime.bench/1"
"""The name and version of the JSON form."""
_LARGEST: Final = 64 << 20
"""Bytes of a file that is read: thousands of rounds take less than one MiB."""


class Metric(str, Enum):
    """What is timed."""

    step = "step"
    """A steady step."""
    process = "process"
    """The whole program, from its start to its end."""


class Stop(str, Enum):
    """What ended the rounds."""

    precise = "precise"
    """The interval is as narrow as was asked for."""
    rounds = "rounds"
    """All rounds were run that there may be."""
    time = "time"
    """All the time was used that there was."""
    interrupted = "interrupted"
    """Ctrl-C."""
    failed = "failed"
    """A program failed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A figure with its 95 % interval, which is unknown after too few rounds."""

    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a program; what has no `step_ms` made no steps, or they were not looked for."""

    process_ms: float
    """From its start to its end."""
    step_ms: float | None = None
    """The mean of its steady steps."""
    all_ms: float | None = None
    """The mean of all steps after the warm-up, with those unlike the others."""
    steps: int = 0
    """Steady steps."""
    warm_up: int = 0
    """Steps that were left out at the beginning."""
    unlike: int = 0
    """Steps that were left out since something happened in them that happens in few."""
    settled: bool | None = None
    """Whether steps were steady half-way at the latest."""
    source: str | None = None
    """What told where steps end."""
    clock: str | None = None
    """Whose clock timed the steps: `host` or `device`."""
    profiler: str | None = None
    """What recorded the program, although it was to run unprofiled."""

    def of(self, metric: Metric) -> float | None:
        """What is compared, in ms."""
        return self.step_ms if metric is Metric.step else self.process_ms


@dataclass(frozen=True, slots=True)
class Round:
    """A run of each program, one right after the other."""

    first: str
    """Which ran first: `before` or `after`."""
    before: Run
    after: Run


@dataclass(frozen=True, slots=True)
class Measured:
    """What one program takes, over all rounds."""

    program: str
    median_ms: float
    """Of what is compared."""
    low_ms: float
    high_ms: float
    """Between which the middle half of the rounds lies."""
    step_ms: float | None
    """The median of the rounds; None where steps are not known."""
    all_ms: float | None
    process_ms: float


@dataclass(frozen=True, slots=True)
class Bench:
    """Two programs timed in turn; `speedup` is above 1 where `after` is faster."""

    metric: Metric
    precision: float
    """Asked for: the interval reaches at most by this share of the speed-up to either side."""
    stop: Stop
    seconds: float
    """That it took."""
    before: Measured
    after: Measured
    speedup: Bounds
    saved_ms: Bounds
    """Of one step or process: `before` less `after`, pair by pair."""
    reached: float | None
    """By which share of the speed-up the interval reaches to either side."""
    failure: str | None
    """How a program failed, if one did."""
    notes: tuple[str, ...]
    """What limits the answer, one sentence each."""
    rounds: tuple[Round, ...]
    """In their order."""

    @property
    def state(self) -> str:
        """`faster` or `slower` where the interval leaves 1 out; else `not told`."""
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
    """What `to_json` wrote; a UsageError if the file is no such thing."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"`{file}` cannot be read: {error.strerror}") from error
    why = "it is no result of `selftime bench … --format json`"
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
