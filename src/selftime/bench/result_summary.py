"""Summarises the rounds of a bench, with notes on the limitations of its result."""

from collections import Counter
from dataclasses import dataclass
from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime.bench.confidence_intervals import MIN_ROUNDS_FOR_INTERVAL
from selftime.bench.result import (
    Bench,
    BenchMetric,
    BenchRound,
    EstimateWithInterval,
    ProgramRun,
    ProgramTimes,
    StopReason,
)

_MIN_STEP_TIME_RATIO_FOR_NOTE: Final = 1.02
"""A note is added if unusual steps raise the mean step time by more than this factor."""


@dataclass(frozen=True, slots=True)
class BenchSample:
    """The completed rounds of a bench, with confidence intervals of speed-up and saved time."""

    metric: BenchMetric
    rounds: tuple[BenchRound, ...]
    times: NDArray[np.float64]
    """Times in ms, shape (rounds, 2): the first column is `before`, the second `after`."""
    log: float
    """Pseudo-median over the rounds of the logarithm of the speed-up."""
    saved: float
    """Pseudo-median over the rounds of the time saved (`before` minus `after`), in ms."""
    log_bounds: tuple[float, float] | None
    saved_bounds: tuple[float, float] | None
    reach: float | None
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
    low, high = sample.log_bounds or (None, None)
    saved_low, saved_high = sample.saved_bounds or (None, None)
    return Bench(
        metric=sample.metric,
        precision=precision,
        stop=stop,
        seconds=seconds,
        before=_program_times(labels[0], sample.times[:, 0], befores),
        after=_program_times(labels[1], sample.times[:, 1], afters),
        speedup=EstimateWithInterval(
            exp(sample.log), None if low is None else exp(low), None if high is None else exp(high)
        ),
        saved_ms=EstimateWithInterval(sample.saved, saved_low, saved_high),
        reached=sample.reach,
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
            f"{len(sample.rounds)} rounds give no 95 % interval: it takes "
            f"{MIN_ROUNDS_FOR_INTERVAL}; allow more, or make the programs shorter"
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
    unsettled = Counter(run.settled for run in runs)[False]
    if 2 * unsettled > len(runs):
        notes.append(
            f"the steps of `{name}` were not steady half-way in {unsettled} of {len(runs)} runs; "
            "make it run for longer"
        )
    step, everything = (
        _median_of_known_values([r.step_ms for r in runs]),
        _median_of_known_values([r.all_ms for r in runs]),
    )
    unlike = round(float(np.median([run.unlike for run in runs])))
    if unlike and step and everything and everything > _MIN_STEP_TIME_RATIO_FOR_NOTE * step:
        notes.append(
            f"`{name}` makes {unlike} unusual steps per run, such as those with an "
            "evaluation, which are left out; with them a step takes "
            f"{everything:.3f} ms on average"
        )
    return notes
