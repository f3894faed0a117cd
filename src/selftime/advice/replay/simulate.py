"""Runs a program: when each call returns and each work ends, if parts of it cost more or less."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime.advice.replay.program import ALL, NOTHING, Program
from selftime.advice.replay.stretches import acting, stretches
from selftime.arrays import Ints

_NEVER: Final = -(1 << 61)
"""Before any time: work that is not run ends then."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a program costs: the times that a what-if may change, in ns."""

    before: Ints
    """Host time before each entry, shape (n,)."""
    own: Ints
    """Host time of each entry without its wait, shape (n,)."""
    waits: NDArray[np.bool_]
    """Which entries wait for their condition, shape (n,)."""
    duration: Ints
    """Device time of each work, shape (m,)."""
    runs: NDArray[np.bool_]
    """Which work there still is, shape (m,)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """When what ended, in ns on the trace's clock."""

    entry_end: Ints
    """When the host was done with each entry, shape (n,)."""
    work_end: Ints
    """When each work was done, shape (m,)."""
    done: dict[int, int]
    """For each step: when the host and all work launched until then were done."""


def costs_of(program: Program) -> Costs:
    """The costs as they were recorded."""
    entries, work = program.entries, program.work
    return Costs(
        before=entries.before,
        own=entries.own,
        waits=(entries.waits_for != NOTHING) | (entries.waits_stream != NOTHING),
        duration=work.end - work.start,
        runs=np.ones(work.id.size, bool),
    )


def simulate(program: Program, costs: Costs) -> Outcome:
    """The program with these costs.

    The order of launches stays as it was recorded.
    """
    run = _Run(program, costs)
    for stretch in stretches(program, run.acts):
        if stretch.at_once:
            run.at_once(stretch.begin, stretch.end)
        else:
            run.one_by_one(stretch.begin, stretch.end)
    return run.outcome()


class _Run:
    """A program on its way. Waits only ever delay a part of the host, by more and more.

    So each entry ends when it would without any wait, and by its part's delay later.
    """

    def __init__(self, program: Program, costs: Costs) -> None:
        entries, work = program.entries, program.work
        self.program, self.costs = program, costs
        self.undelayed = _undelayed(program, costs)
        self.acts = at = acting(program)
        self.part, self.own = entries.part[at], costs.own[at]
        self.ends = self.undelayed[at]
        self.waits, self.after = costs.waits[at], entries.after[at]
        self.for_work, self.for_stream = entries.waits_for[at], entries.waits_stream[at]
        self.first, self.last = entries.first_work[at], entries.last_work[at]
        self.stream, self.latency, self.gap = work.stream, work.latency, work.gap
        self.needs, self.needs_gap = work.needs, work.needs_gap
        self.duration, self.runs = costs.duration, costs.runs
        self.delay = [0] * program.parts
        """How late each part of the host is."""
        self.delayed = np.zeros(at.size, np.int64)
        """How late its part was after each entry."""
        self.free = [program.begin] * program.streams.height
        """When each stream has done its work."""
        self.work_end = np.full(work.id.size, program.begin, np.int64)

    def outcome(self) -> Outcome:
        """When everything ended."""
        entries, free = self.program.entries, self.free
        delay = np.zeros(entries.id.size, np.int64)
        delay[self.acts] = self.delayed
        for part in range(self.program.parts):
            own = entries.part == part
            delay[own] = np.maximum.accumulate(delay[own])
        end = self.undelayed + delay
        marks = np.flatnonzero(entries.mark != NOTHING)
        until = end[marks]
        if free:
            reach = np.append(self.program.begin, np.maximum.accumulate(self.work_end))
            until = np.maximum(
                until, np.maximum(reach[entries.last_work[marks]], self.program.begin)
            )
        done = dict(zip(entries.mark[marks].tolist(), until.tolist(), strict=True))
        return Outcome(end, self.work_end, done)

    def one_by_one(self, begin: int, end: int) -> None:
        """Some acting entries in a loop, over lists, as it is all there is to the time of it."""
        span = slice(begin, end)
        entries = zip(
            self.part[span].tolist(),
            self.ends[span].tolist(),
            self.own[span].tolist(),
            self.first[span].tolist(),
            self.last[span].tolist(),
            self.waits[span].tolist(),
            strict=True,
        )
        delay, delayed = self.delay, []
        run_work = self._worker(begin, end)
        for at, (part, until, own, first, last, waits) in enumerate(entries, begin):
            late = delay[part]
            if first != last:
                run_work(until - own + late, first, last)
            if waits:
                late = max(late, self._condition(at) - until)
                delay[part] = late
            delayed.append(late)
        self.delayed[span] = delayed

    def _worker(self, begin: int, end: int) -> Callable[[int, int, int], None]:
        """Puts the work of some entries on its streams, in order."""
        start = int(self.first[begin])
        span = slice(start, int(self.last[end - 1]))
        stream, latency, gap = (
            column[span].tolist() for column in (self.stream, self.latency, self.gap)
        )
        needs, needs_gap = self.needs[span].tolist(), self.needs_gap[span].tolist()
        duration, runs = self.duration[span].tolist(), self.runs[span].tolist()
        free, ends = self.free, self.work_end.data

        def run_work(called: int, first: int, last: int) -> None:
            for work in range(first, last):
                j = work - start
                busy = free[stream[j]]
                if not runs[j]:
                    ends[work] = busy
                    continue
                start_at = max(called + latency[j], busy + gap[j])
                if needs[j] != NOTHING:
                    start_at = max(start_at, ends[needs[j]] + needs_gap[j])
                ends[work] = done = start_at + duration[j]
                if done > busy:
                    free[stream[j]] = done

        return run_work

    def _condition(self, at: int) -> int:
        """Until when an acting entry waits, if all of its work has been run."""
        stream = int(self.for_stream[at])
        if stream == NOTHING:
            until = int(self.work_end[self.for_work[at]])
        else:
            until = max(self.free) if stream == ALL else self.free[stream]
        return until + int(self.after[at])

    def at_once(self, begin: int, end: int) -> None:
        """Acting entries of which none but the last waits for what is launched among them."""
        span = slice(begin, end)
        held = self.waits[span] & (self.for_stream[span] == NOTHING)
        held[-1] = False
        until = self.work_end[np.where(held, self.for_work[span], 0)] if held.any() else 0
        late = np.where(held, until + self.after[span] - self.ends[span], 0)
        parts = self.part[span]
        delayed = np.empty(end - begin, np.int64)
        before = np.empty(end - begin, np.int64)
        for part in np.unique(parts).tolist():
            own = np.flatnonzero(parts == part)
            reach = np.maximum.accumulate(np.append(self.delay[part], late[own]))
            before[own], delayed[own] = reach[:-1], reach[1:]
            self.delay[part] = int(reach[-1])
        called = self.ends[span] - self.own[span] + before
        self._run_work(
            np.repeat(called, self.last[span] - self.first[span]), int(self.first[begin])
        )
        if self.waits[end - 1]:
            part = int(parts[-1])
            wanted = self._condition(end - 1) - int(self.ends[end - 1])
            self.delay[part] = max(self.delay[part], wanted)
            delayed[-1] = self.delay[part]
        self.delayed[span] = delayed

    def _run_work(self, called: Ints, first: int) -> None:
        """Work that needs none of each other but what its stream does before.

        The end of a stream's work is `max(end before + pass, own end on an idle stream)`: a running
        maximum, once the sum of all that passes is taken away.
        """
        span = slice(first, first + called.size)
        start = called + self.latency[span]
        needs = self.needs[span]
        needing = np.flatnonzero(needs != NOTHING)
        start[needing] = np.maximum(
            start[needing], self.work_end[needs[needing]] + self.needs_gap[span][needing]
        )
        streams = self.stream[span]
        for stream in np.unique(streams).tolist():
            own = np.flatnonzero(streams == stream)
            runs, duration = self.runs[span][own], self.duration[span][own]
            gap = self.gap[span][own]
            passing = np.cumsum(np.where(runs, np.maximum(gap + duration, 0), 0))
            alone = np.where(runs, start[own] + duration - passing, _NEVER)
            busy = np.maximum.accumulate(np.append(self.free[stream], alone))
            busy[1:] += passing
            ends = np.maximum(start[own], busy[:-1] + gap) + duration
            self.work_end[first + own] = np.where(runs, ends, busy[:-1])
            self.free[stream] = int(busy[-1])


def _undelayed(program: Program, costs: Costs) -> Ints:
    """When each entry would end if none ever waited."""
    ends = np.empty(program.entries.id.size, np.int64)
    takes = costs.before + costs.own
    for part in range(program.parts):
        own = program.entries.part == part
        ends[own] = program.begin + np.cumsum(takes[own])
    return ends
