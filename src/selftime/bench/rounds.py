"""Run two programs in turn until the interval is narrow enough or a limit is reached.

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

from selftime.bench.interval import Inspections, pseudo_median
from selftime.bench.process import BenchedProgram, RunOutcome, run_once
from selftime.bench.result import Bench, Metric, Round, Run, Stop
from selftime.bench.steady import steady_steps
from selftime.bench.summary import Sample, summarize
from selftime.errors import SelftimeError

_BEFORE: Final = "before"
_AFTER: Final = "after"


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop."""

    precision: float = 0.02
    """The wanted half-width of the 95 % interval, as a share of the speed-up."""
    rounds: int = 32
    """The most rounds, not counting the first one."""
    seconds: float = 1800.0
    """The time limit in seconds; a program that still runs then is ended."""


class Runner(Protocol):
    """Runs a program once; tests pass their own."""

    def __call__(
        self, program: BenchedProgram, *, timed: bool, seconds: float | None
    ) -> RunOutcome: ...


def bench(  # noqa: PLR0913 - what may be left out is named
    before: BenchedProgram,
    after: BenchedProgram,
    *,
    metric: Metric | None = None,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
    run: Runner = run_once,
    clock: Callable[[], float] = time.monotonic,
) -> Bench:
    """Time two programs against each other.

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
    series = _Series((before, after), metric, limits or Limits(), run, clock)
    series.progress = progress or _nothing
    return series.bench()


class _Failed(SelftimeError):  # noqa: N818 - reads as what was found
    """A program failed."""


class _Late(SelftimeError):  # noqa: N818 - likewise
    """The time limit was reached."""


@dataclass(slots=True)
class _Series:
    programs: tuple[BenchedProgram, BenchedProgram]
    metric: Metric | None
    limits: Limits
    run: Runner
    clock: Callable[[], float]
    progress: Callable[[int, int], None] = field(init=False)
    rounds: list[Round] = field(default_factory=list)
    looks: Inspections = field(init=False)
    began: float = field(init=False)
    done: int = 0

    def bench(self) -> Bench:
        self.began, self.looks = self.clock(), Inspections(self.limits.rounds)
        failure = None
        sample: Sample | None = None
        try:
            self._rehearse()
            stop, sample = self._until_narrow()
        except KeyboardInterrupt:
            stop = Stop.interrupted
            if not self.rounds:
                raise
        except _Late as late:
            stop = Stop.time
            if not self.rounds:
                raise SelftimeError(f"{late}; allow more with `--max-seconds`") from None
        except _Failed as failed:
            stop, failure = Stop.failed, str(failed)
            if not self.rounds:
                raise
        if sample is None:
            sample = self._looked_at(last=True)
        took = self.clock() - self.began
        labels = self.programs[0].label, self.programs[1].label
        return summarize(sample, labels, self.limits.precision, stop, took, failure)

    def _rehearse(self) -> None:
        """Run one round that is not counted; it shows which metric can be compared."""
        first = self._round(is_after_first=False)
        runs = {_BEFORE: first.before, _AFTER: first.after}
        lacking = [name for name, run in runs.items() if run.step_ms is None]
        if self.metric is Metric.step and lacking:
            program = self.programs[0 if lacking[0] == _BEFORE else 1]
            raise _Failed(
                f"`{program.label[:200]}` makes too few recognisable steps; make it run for "
                "longer, or time whole processes with `--metric process`"
            )
        if self.metric is None:
            self.metric = Metric.process if lacking else Metric.step

    def _until_narrow(self) -> tuple[Stop, Sample]:
        while True:
            self.rounds.append(self._round(is_after_first=len(self.rounds) % 2 == 1))
            count = len(self.rounds)
            if not self.looks.is_due(count):
                continue
            is_last = count >= self.limits.rounds
            sample = self._looked_at(last=is_last)
            if sample.reach is not None and sample.reach <= self.limits.precision:
                return Stop.precise, sample
            if is_last:
                return Stop.rounds, sample

    def _looked_at(self, *, last: bool) -> Sample:
        metric = self.metric or Metric.process
        told = [(one.before.of(metric), one.after.of(metric)) for one in self.rounds]
        times = np.array(told, np.float64)
        logs, apart = np.log(times[:, 0] / times[:, 1]), times[:, 0] - times[:, 1]
        bounds = self.looks.inspect(logs, apart, last=last)
        reach = None if bounds[0] is None else expm1((bounds[0][1] - bounds[0][0]) / 2)
        return Sample(
            metric,
            tuple(self.rounds),
            times,
            pseudo_median(logs),
            pseudo_median(apart),
            bounds[0],
            bounds[1],
            reach,
        )

    def _round(self, *, is_after_first: bool) -> Round:
        order = (_AFTER, _BEFORE) if is_after_first else (_BEFORE, _AFTER)
        runs = {name: self._once(name) for name in order}
        return Round(order[0], runs[_BEFORE], runs[_AFTER])

    def _once(self, name: str) -> Run:
        program = self.programs[0 if name == _BEFORE else 1]
        left = self.limits.seconds - (self.clock() - self.began)
        if left <= 0:
            raise _Late(self._too_late())
        ended = self.run(program, timed=self.metric is not Metric.process, seconds=left)
        if ended.is_late:
            raise _Late(self._too_late())
        found = _measured_run(program, ended)
        if self.rounds and self.metric is Metric.step and found.step_ms is None:
            raise _Failed(f"`{program.label[:200]}` made steps before, and no longer does")
        self.done += 1
        self.progress(self.done, 2 * (1 + self.limits.rounds))
        return found

    def _too_late(self) -> str:
        return f"the {self.limits.seconds:g} s were over before a round was complete"


def _measured_run(program: BenchedProgram, ended: RunOutcome) -> Run:
    """Returns the measured run; raises `_Failed` if the program failed."""
    if ended.status:
        how = f"ended with status {ended.status}"
        if ended.status < 0:
            how = f"was ended by signal {-ended.status}"
        words = (
            f": {ended.last_words[:300]}" if ended.last_words else " and wrote nothing to stderr"
        )
        raise _Failed(f"`{program.label[:200]}` {how}{words}")
    process_ms = ended.seconds * 1e3
    told = next(((times, found) for times in ended.steps if (found := steady_steps(times))), None)
    if told is None:
        return Run(process_ms)
    times, found = told
    return Run(
        process_ms,
        found.step_ms,
        found.all_ms,
        found.steps,
        found.warm_up,
        found.unlike,
        found.settled,
        found.source,
        found.clock,
        times.profiler,
    )


def _nothing(_done: int, _most: int) -> None:
    pass
