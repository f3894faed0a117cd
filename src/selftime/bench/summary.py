"""Summarise the rounds of a bench, with notes on its limitations."""

from collections import Counter
from dataclasses import dataclass
from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime.bench.interval import FEWEST_ROUNDS
from selftime.bench.result import Bench, Bounds, Metric, ProgramTimes, Round, Run, Stop

_MUCH: Final = 1.02
"""The ratio of mean step time with and without unusual steps above which a note is added."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The rounds so far, and their estimates and intervals."""

    metric: Metric
    rounds: tuple[Round, ...]
    times: NDArray[np.float64]
    """Times in ms, shape (rounds, 2): before and after."""
    log: float
    """The centre of the logarithms of the speed-ups."""
    saved: float
    """The centre of the differences, in ms."""
    log_bounds: tuple[float, float] | None
    saved_bounds: tuple[float, float] | None
    reach: float | None
    """The half-width of the speed-up's interval, as a share of the speed-up."""


def summarize(
    sample: Sample,
    labels: tuple[str, str],
    precision: float,
    stop: Stop,
    seconds: float,
    failure: str | None,
) -> Bench:
    """Returns the result of the rounds."""
    befores = [pair.before for pair in sample.rounds]
    afters = [pair.after for pair in sample.rounds]
    low, high = sample.log_bounds or (None, None)
    saved_low, saved_high = sample.saved_bounds or (None, None)
    return Bench(
        metric=sample.metric,
        precision=precision,
        stop=stop,
        seconds=seconds,
        before=_measured(labels[0], sample.times[:, 0], befores),
        after=_measured(labels[1], sample.times[:, 1], afters),
        speedup=Bounds(
            exp(sample.log), None if low is None else exp(low), None if high is None else exp(high)
        ),
        saved_ms=Bounds(sample.saved, saved_low, saved_high),
        reached=sample.reach,
        failure=failure,
        notes=tuple(_notes(sample, (befores, afters))),
        rounds=sample.rounds,
    )


def _measured(label: str, times: NDArray[np.float64], runs: list[Run]) -> ProgramTimes:
    low, high = np.quantile(times, (0.25, 0.75))
    return ProgramTimes(
        program=label,
        median_ms=float(np.median(times)),
        low_ms=float(low),
        high_ms=float(high),
        step_ms=_median([run.step_ms for run in runs]),
        all_ms=_median([run.all_ms for run in runs]),
        process_ms=float(np.median([run.process_ms for run in runs])),
    )


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _notes(sample: Sample, both: tuple[list[Run], list[Run]]) -> list[str]:
    notes = []
    if len(sample.rounds) < FEWEST_ROUNDS:
        notes.append(
            f"{len(sample.rounds)} rounds give no 95 % interval: it takes {FEWEST_ROUNDS}; allow "
            "more, or make the programs shorter"
        )
    if sample.metric is Metric.step:
        for name, runs in zip(("before", "after"), both, strict=True):
            notes += _notes_on_steps(name, runs)
        ways = [{(run.source, run.clock) for run in runs} for runs in both]
        if ways[0] != ways[1]:
            told = [" and ".join(sorted(f"{s} ({c}'s clock)" for s, c in way)) for way in ways]
            notes.append(
                "the ends of steps were recognised differently: "
                f"{told[0]} before, {told[1]} after; a step may not be the same work in both"
            )
    for name, runs in zip(("before", "after"), both, strict=True):
        profiler = next((run.profiler for run in runs if run.profiler), None)
        if profiler is not None:
            notes.append(f"`{name}` is slowed by {profiler}, which recorded it at the same time")
    return notes


def _notes_on_steps(name: str, runs: list[Run]) -> list[str]:
    notes = []
    unsettled = Counter(run.settled for run in runs)[False]
    if 2 * unsettled > len(runs):
        notes.append(
            f"the steps of `{name}` were not steady half-way in {unsettled} of {len(runs)} runs; "
            "make it run for longer"
        )
    step, everything = _median([r.step_ms for r in runs]), _median([r.all_ms for r in runs])
    unlike = round(float(np.median([run.unlike for run in runs])))
    if unlike and step and everything and everything > _MUCH * step:
        notes.append(
            f"`{name}` makes {unlike} unusual steps per run, such as those with an "
            "evaluation, which are left out; with them a step takes "
            f"{everything:.3f} ms on average"
        )
    return notes
