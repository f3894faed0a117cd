"""Asks what-if: the program of a trace, run again with changed costs.

The replay of the unchanged program is exact, as every constraint holds its observed remainder. What
it predicts of a changed one rests on the model: work of a stream runs in order, hosts go on when
what they wait for is done, and all that is not changed takes as long as it took.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime.advice.replay.changes import Change, Cut, Scale, Unwait, apply
from selftime.advice.replay.extract import program_of
from selftime.advice.replay.program import Program
from selftime.advice.replay.simulate import Outcome, costs_of, simulate
from selftime.intervals import Intervals, intersect, length, subtract, union
from selftime.trace import Trace
from selftime.views.accounts.kept import kept
from selftime.views.accounts.steps.judging import judged_steps

__all__ = ["Replay", "replay_of"]


@dataclass(frozen=True, slots=True)
class Replay:
    """A program, the steps that count in it, and how long they took; times in ns."""

    program: Program
    counted: tuple[int, ...]
    """Which steps count, by their place."""
    begin: int
    """When the first step began."""
    recorded: Outcome
    spans: Intervals
    """The time of the steps that count, from done to done."""
    idle: Intervals
    """When no device worked in those."""

    def step_time(self, *changes: Change) -> float:
        """The mean time of a counted step after the changes, from done to done."""
        outcome = self._outcome(changes)
        done = [outcome.done[step] for step in sorted(outcome.done)]
        times = np.diff(np.array([self.begin, *done], np.int64))
        counted = [int(times[step]) for step in self.counted]
        return float(np.mean(counted)) if counted else 0.0

    def program_time(self, *changes: Change) -> int:
        """From the begin of the first step until the last is done."""
        return max(self._outcome(changes).done.values(), default=self.begin) - self.begin

    def saving(self, *changes: Change) -> float:
        """What a counted step takes less after the changes, at most what they can save."""
        less = self.step_time() - self.step_time(*changes)
        return max(0.0, min(less, self._limit(list(changes))))

    def _outcome(self, changes: tuple[Change, ...]) -> Outcome:
        if not changes:
            return self.recorded
        return simulate(self.program, apply(self.program, costs_of(self.program), list(changes)))

    def _limit(self, changes: list[Change]) -> float:
        """Host causes save no more than the idle time of devices, device causes their own.

        Without a device the host's time is the step's.
        """
        steps = max(len(self.counted), 1)
        limit = self.exposed_time(*changes)
        if any(isinstance(change, Cut | Unwait) for change in changes):
            if not self.program.work.id.size:
                return float("inf")
            limit += length(self.idle) / steps
        return limit

    def exposed_time(self, *changes: Change) -> float:
        """Time of a counted step in which nothing ran but the work that the changes scale."""
        exposed = [self._exposed(change) for change in changes if isinstance(change, Scale)]
        return sum(exposed) / max(len(self.counted), 1)

    def _exposed(self, change: Scale) -> float:
        """Time in which nothing but the work that is scaled ran."""
        work = self.program.work
        chosen = np.isin(work.id, change.work)
        own = union(work.start[chosen], work.end[chosen])
        others = union(work.start[~chosen], work.end[~chosen])
        return float(length(intersect(subtract(own, others), self.spans)))


@kept
def replay_of(trace: Trace) -> Replay:
    """The replay of a trace's steps."""
    program = program_of(trace)
    steps = judged_steps(trace)
    recorded = simulate(program, costs_of(program))
    begin = int(steps["start"][0]) if steps.height else program.begin
    counted = steps.with_row_index("place").filter(pl.col("counted"))["place"].to_list()
    done = np.array([begin, *(recorded.done[step] for step in sorted(recorded.done))], np.int64)
    spans = union(done[:-1][counted], done[1:][counted])
    busy = union(program.work.start, program.work.end)
    return Replay(program, tuple(counted), begin, recorded, spans, subtract(spans, busy))
