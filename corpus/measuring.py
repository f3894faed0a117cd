"""What programs of the corpus take: a program against its repaired twin, run in turn."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from entries import FOLDER, Entry, Order, Sizes
from numpy.typing import NDArray

__all__ = ["Gain", "Pair", "Runner", "gain", "is_same", "measure", "recorded", "runner"]

LEVEL: Final = (2.5, 97.5)
RESAMPLES: Final = 2_000
RELATIVE: Final = 1e-3
"""Outputs in single precision, a few steps into a training, differ by less where they are equal."""
ABSOLUTE: Final = 1e-5
SIMILAR: Final = 0.1
"""Weights that are drawn in another order move a loss by less."""
STANDARD_ERRORS: Final = 4.0
"""Means of equal distributions differ by more once in 16 000."""

Floats = NDArray[np.float64]


class Runner:
    """The process that runs programs; see `program.py`."""

    def __init__(self, orders: IO[str], answers: IO[str]) -> None:
        self._orders, self._answers = orders, answers

    def __call__(self, order: Order) -> dict[str, Any]:
        self._orders.write(order.to_json() + "\n")
        self._orders.flush()
        line = self._answers.readline()
        found: dict[str, Any] = json.loads(line) if line else {"error": "the runner has ended"}
        if "error" in found:
            raise SystemExit(f"`{order.entry}/{order.which}.py` failed: {found['error']}")
        return found


@contextmanager
def runner() -> Iterator[Runner]:
    command = [sys.executable, str(FOLDER / "program.py")]
    one = os.environ | {"OMP_NUM_THREADS": "1"}  # else who takes a core makes other threads spin
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=one
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("the runner has no pipes")
        yield Runner(process.stdin, process.stdout)
        process.stdin.close()


@dataclass(frozen=True, slots=True)
class Gain:
    """What a repair gives, with the 95 % interval of a bootstrap over pairs of runs."""

    before_ms: float
    after_ms: float
    saved_ms: float
    low_ms: float
    high_ms: float
    speedup: float
    slowest: float
    """The lower end of the speed-up's interval."""
    fastest: float

    @property
    def is_sure(self) -> bool:
        """Whether the twin is faster: its interval does not hold 1."""
        return self.slowest > 1


@dataclass(frozen=True, slots=True)
class Pair:
    """A program's runs in ns a step, and those of each of its twins, run in turn."""

    bad: tuple[float, ...]
    twins: dict[str, tuple[float, ...]]
    is_same: bool | None
    """Whether both compute the same, as far as the entry promises it; None where none tells."""

    def gain(self, twin: str = "good") -> Gain:
        return gain(self.bad, self.twins[twin])


def measure(run: Runner, about: Entry, seed: int, runs: int, *, sizes: Sizes = "full") -> Pair:
    """Runs in turn, each in its own process, so that what slows the machine slows all."""
    programs = ("bad", *about.twins)
    steps = 1 if sizes == "dry" else None
    times: dict[str, list[float]] = {which: [] for which in programs}
    given: dict[str, Any] = {}
    for _ in range(runs):
        for which in programs:
            found = run(Order(about.name, which, seed, sizes=sizes, steps=steps))
            times[which].append(found["step_ns"])
            given.setdefault(which, found["outputs"])
    bad, *twins = (tuple(times[which]) for which in programs)
    return Pair(
        bad,
        dict(zip(programs[1:], twins, strict=True)),
        is_same(about, given["bad"], given["good"]),
    )


def gain(before: tuple[float, ...], after: tuple[float, ...]) -> Gain:
    """Pairs are resampled: each has what slowed the machine at its time in both."""
    first, second = np.array(before) / 1e6, np.array(after) / 1e6
    draw = np.random.default_rng(0).integers(0, first.size, (RESAMPLES, first.size))

    def interval(pairs: Floats) -> tuple[float, float]:
        low, high = np.percentile(np.median(pairs[draw], axis=1), LEVEL)
        return float(low), float(high)

    saved, ratio = first - second, first / second
    return Gain(
        float(np.median(first)),
        float(np.median(second)),
        float(np.median(saved)),
        *interval(saved),
        float(np.median(ratio)),
        *interval(ratio),
    )


def is_same(about: Entry, bad: list[list[float]], good: list[list[float]]) -> bool | None:
    """Outputs of the first steps, as the entry promises: equal, or of one distribution."""
    if about.equivalence == "none" or not (any(bad) and any(good)):
        return None
    if about.equivalence == "allclose":
        return all(
            len(one) == len(other) and np.allclose(one, other, rtol=RELATIVE, atol=ABSOLUTE)
            for one, other in zip(bad, good, strict=True)
        )
    first, second = (np.concatenate([np.array(step) for step in steps]) for steps in (bad, good))
    error = np.sqrt(first.var() / first.size + second.var() / second.size)
    scale = max(abs(float(first.mean())), abs(float(second.mean())))
    room = max(STANDARD_ERRORS * float(error), SIMILAR * scale)
    return abs(float(first.mean() - second.mean())) <= room


def recorded(run: Runner, about: Entry, which: str, seed: int, folder: Path) -> Path:
    """The trace of one more run, of the first rank."""
    return Path(run(Order(about.name, which, seed, record=str(folder)))["trace"])
