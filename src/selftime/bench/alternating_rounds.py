"""Runs two programs in turn until their speed-up is known precisely or a limit is reached.

A round is one run of each, directly after one another: what slows the machine for longer slows
both. The order alternates (A B, B A, A B, …), so that a machine that gets steadily slower favours
neither. A first round is discarded: it fills caches, and shows whether both programs run and make
steps.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import expm1
from typing import Final, Protocol

import numpy as np

from selftime.bench.confidence_intervals import Inspections, pseudo_median
from selftime.bench.program_runs import BenchedProgram, RunOutcome, run_program_once
from selftime.bench.result import (
    Bench,
    BenchMetric,
    BenchRound,
    BenchSample,
    ProgramRun,
    StopReason,
    summarize_bench,
)
from selftime.bench.steady_step_time import steady_steps
from selftime.errors import SelftimeError
from selftime.progress import ProgressCallback

_FIRST_PROGRAM_NAME: Final = "before"
_SECOND_PROGRAM_NAME: Final = "after"


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a bench: the wanted precision, a number of rounds, or a time limit."""

    precision: float = 0.02
    """Half-width of the speed-up's 95 % confidence interval, divided by the speed-up, at which
    the bench ends."""
    rounds: int = 32
    """Largest number of rounds (runs of both programs), not counting the first round."""
    seconds: float = 1800.0
    """Time limit of the bench in seconds; a program that still runs then is ended."""


class ProgramRunner(Protocol):
    """Type of a function that runs a program once, such as `run_program_once`."""

    def __call__(
        self, program: BenchedProgram, *, timed: bool, seconds: float | None
    ) -> RunOutcome: ...


def bench(  # noqa: PLR0913 - what may be left out is named
    before: BenchedProgram,
    after: BenchedProgram,
    *,
    metric: BenchMetric | None = None,
    limits: Limits | None = None,
    progress: ProgressCallback | None = None,
    run: ProgramRunner = run_program_once,
    clock: Callable[[], float] = time.monotonic,
) -> Bench:
    """Times two programs in turn; returns the ratio of their times with a confidence interval.

    Ctrl-C and a failing program end the rounds; the result holds what was measured until then.

    Args:
        before: The first program.
        after: The second; the speed-up is the time of the first divided by the time of the second.
        metric: What to compare; None compares steps if both programs make steps, else processes.
        limits: When to stop.
        progress: Called with the runs done and the most runs possible.
        run: Runs a program.
        clock: Returns the time in seconds.

    Raises:
        SelftimeError: A program fails, or the time is up, before the first round is complete.
    """
    bench_run = _BenchRun((before, after), metric, limits or Limits(), run, clock)
    bench_run.progress = progress or _ignore_progress
    return bench_run.run_rounds()


class _ProgramFailed(SelftimeError):  # noqa: N818 - a result rather than an error
    """Raised if one of the two programs failed; the message says how it failed."""


class _TimeLimitReached(SelftimeError):  # noqa: N818 - likewise
    """Raised if the time limit of the bench is reached."""


@dataclass(slots=True)
class _BenchRun:
    """State of a running bench: the two programs, the limits, and the completed rounds."""

    programs: tuple[BenchedProgram, BenchedProgram]
    metric: BenchMetric | None
    limits: Limits
    run_program: ProgramRunner
    clock: Callable[[], float]
    progress: ProgressCallback = field(init=False)
    rounds: list[BenchRound] = field(default_factory=list)
    inspections: Inspections = field(init=False)
    start_s: float = field(init=False)
    completed_runs: int = 0

    def run_rounds(self) -> Bench:
        """Runs both programs until the bench ends, and returns its result."""
        self.start_s, self.inspections = self.clock(), Inspections(self.limits.rounds)
        failure = None
        sample: BenchSample | None = None
        try:
            self._run_first_round()
            stop, sample = self._run_until_precise_or_limit()
        except KeyboardInterrupt:
            stop = StopReason.interrupted
            if not self.rounds:
                raise
        except _TimeLimitReached as late:
            stop = StopReason.time
            if not self.rounds:
                raise SelftimeError(f"{late}; allow more with `--max-seconds`") from None
        except _ProgramFailed as failed:
            stop, failure = StopReason.failed, str(failed)
            if not self.rounds:
                raise
        if sample is None:
            sample = self._sample_with_intervals(is_last=True)
        took = self.clock() - self.start_s
        labels = self.programs[0].label, self.programs[1].label
        return summarize_bench(sample, labels, self.limits.precision, stop, took, failure)

    def _run_first_round(self) -> None:
        """Runs both programs once, uncounted, to choose between step time and process time."""
        first = self._run_round(runs_after_first=False)
        runs = {_FIRST_PROGRAM_NAME: first.before, _SECOND_PROGRAM_NAME: first.after}
        lacking = [name for name, run in runs.items() if run.step_ms is None]
        if self.metric is BenchMetric.step and lacking:
            program = self.programs[0 if lacking[0] == _FIRST_PROGRAM_NAME else 1]
            raise _ProgramFailed(
                f"`{program.label[:200]}` makes too few recognisable steps; make it run for "
                "longer, or time whole processes with `--metric process`"
            )
        if self.metric is None:
            self.metric = BenchMetric.process if lacking else BenchMetric.step

    def _run_until_precise_or_limit(self) -> tuple[StopReason, BenchSample]:
        while True:
            self.rounds.append(self._run_round(runs_after_first=len(self.rounds) % 2 == 1))
            count = len(self.rounds)
            if not self.inspections.is_inspection_due(count):
                continue
            is_last = count >= self.limits.rounds
            sample = self._sample_with_intervals(is_last=is_last)
            if (
                sample.relative_half_width is not None
                and sample.relative_half_width <= self.limits.precision
            ):
                return StopReason.precise, sample
            if is_last:
                return StopReason.rounds, sample

    def _sample_with_intervals(self, *, is_last: bool) -> BenchSample:
        metric = self.metric or BenchMetric.process
        told = [(one.before.time_ms(metric), one.after.time_ms(metric)) for one in self.rounds]
        times = np.array(told, np.float64)
        logs, apart = np.log(times[:, 0] / times[:, 1]), times[:, 0] - times[:, 1]
        bounds = self.inspections.confidence_intervals(logs, apart, is_last=is_last)
        relative_half_width = (
            None if bounds[0] is None else expm1((bounds[0][1] - bounds[0][0]) / 2)
        )
        return BenchSample(
            metric,
            tuple(self.rounds),
            times,
            pseudo_median(logs),
            pseudo_median(apart),
            bounds[0],
            bounds[1],
            relative_half_width,
        )

    def _run_round(self, *, runs_after_first: bool) -> BenchRound:
        order = (
            (_SECOND_PROGRAM_NAME, _FIRST_PROGRAM_NAME)
            if runs_after_first
            else (_FIRST_PROGRAM_NAME, _SECOND_PROGRAM_NAME)
        )
        runs = {name: self._run_program(name) for name in order}
        return BenchRound(order[0], runs[_FIRST_PROGRAM_NAME], runs[_SECOND_PROGRAM_NAME])

    def _run_program(self, name: str) -> ProgramRun:
        program = self.programs[0 if name == _FIRST_PROGRAM_NAME else 1]
        left = self.limits.seconds - (self.clock() - self.start_s)
        if left <= 0:
            raise _TimeLimitReached(self._time_limit_message())
        ended = self.run_program(
            program, timed=self.metric is not BenchMetric.process, seconds=left
        )
        if ended.is_late:
            raise _TimeLimitReached(self._time_limit_message())
        found = _program_run_of_outcome(program, ended)
        if self.rounds and self.metric is BenchMetric.step and found.step_ms is None:
            raise _ProgramFailed(
                f"`{program.label[:200]}` made steps in earlier runs, but too few in this one"
            )
        self.completed_runs += 1
        self.progress(self.completed_runs, 2 * (1 + self.limits.rounds))
        return found

    def _time_limit_message(self) -> str:
        return f"the {self.limits.seconds:g} s time limit was reached before a round was complete"


def _program_run_of_outcome(program: BenchedProgram, outcome: RunOutcome) -> ProgramRun:
    """Returns the times of one run of a program; raises `_ProgramFailed` if the run failed."""
    if outcome.status:
        how = f"ended with status {outcome.status}"
        if outcome.status < 0:
            how = f"was ended by signal {-outcome.status}"
        words = (
            f": {outcome.last_stderr_line[:300]}"
            if outcome.last_stderr_line
            else " and wrote nothing to stderr"
        )
        raise _ProgramFailed(f"`{program.label[:200]}` {how}{words}")
    process_ms = outcome.seconds * 1e3
    told = next(((times, found) for times in outcome.steps if (found := steady_steps(times))), None)
    if told is None:
        return ProgramRun(process_ms)
    times, found = told
    return ProgramRun(
        process_ms,
        found.step_ms,
        found.all_ms,
        found.steps,
        found.warm_up,
        found.unusual_steps,
        found.is_steady_by_half,
        found.source,
        found.clock,
        times.profiler,
    )


def _ignore_progress(_done_runs: int, _max_runs: int | None) -> None:
    pass
