"""Runs a dependency graph: when calls return and work ends, if some of it costs more or less.

It stays beside the changes that it answers for: what is recorded needs no simulation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime.advice.replay.stretches import acting, stretches, waiting
from selftime.analysis.graph.graph import ALL, DependencyGraph
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE

_NEVER: Final = -(1 << 61)
"""Before any time: work that is not run ends then."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The times of a graph that a what-if may change, in ns."""

    before: Ints
    """Host time before each call, shape (n,)."""
    own: Ints
    """Host time of each call without its wait, shape (n,)."""
    waits: Flags
    """Which calls wait for their condition, shape (n,)."""
    duration: Ints
    """Device time of each work, shape (m,)."""
    runs: Flags
    """Which work there still is, shape (m,)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """When what ended, in ns on the trace's clock."""

    call_end: Ints
    """When the host was done with each call, shape (n,)."""
    work_end: Ints
    """When each work was done, shape (m,)."""
    done: dict[int, int]
    """For each step: when the host and all work launched until then were done."""


def costs_of(graph: DependencyGraph) -> Costs:
    """The costs as they were recorded."""
    calls, work = graph.calls, graph.work
    return Costs(
        before=calls.before,
        own=calls.own,
        waits=waiting(graph),
        duration=work.end - work.start,
        runs=np.ones(work.id.size, bool),
    )


def simulate(graph: DependencyGraph, costs: Costs) -> Outcome:
    """The graph with these costs.

    The order of launches stays as it was recorded. Work that is not run any more takes no time,
    and what comes after it on its stream still waits for the other streams that it waited for.
    """
    run = _Run(graph, costs)
    for stretch in stretches(graph, run.acts):
        if stretch.at_once:
            run.at_once(stretch.begin, stretch.end)
        else:
            run.one_by_one(stretch.begin, stretch.end)
    return run.outcome()


class _Run:
    """A graph on its way. Waits only ever delay a thread of the host, by more and more.

    So each call ends when it would without any wait, and by its thread's delay later.
    """

    def __init__(self, graph: DependencyGraph, costs: Costs) -> None:
        calls, work = graph.calls, graph.work
        self.graph, self.costs = graph, costs
        self.undelayed = _undelayed(graph, costs)
        self.acts = at = acting(graph)
        self.thread, self.own = calls.thread[at], costs.own[at]
        self.ends = self.undelayed[at]
        self.waits, self.after = costs.waits[at], calls.after[at]
        self.for_work, self.for_stream = calls.waits_for[at], calls.waits_stream[at]
        self.for_call = np.searchsorted(at, calls.waits_call[at])
        self.for_call[calls.waits_call[at] == NONE] = NONE
        self.first, self.last = calls.first_work[at], calls.last_work[at]
        self.stream, self.latency, self.gap = work.stream, work.latency, work.gap
        self.needs, self.lag = graph.waits.needs, graph.waits.lag
        self.first_need = np.searchsorted(graph.waits.work, np.arange(work.id.size + 1))
        self.duration, self.runs = costs.duration, costs.runs
        self.delay = [0] * graph.threads
        """How late each thread of the host is."""
        self.delayed = np.zeros(at.size, np.int64)
        """How late its thread was after each call."""
        self.free = [graph.begin] * graph.streams
        """When each stream has done its work."""
        self.work_end = np.full(work.id.size, graph.begin, np.int64)

    def outcome(self) -> Outcome:
        """When everything ended."""
        calls, free = self.graph.calls, self.free
        delay = np.zeros(calls.id.size, np.int64)
        delay[self.acts] = self.delayed
        for thread in range(self.graph.threads):
            own = calls.thread == thread
            delay[own] = np.maximum.accumulate(delay[own])
        end = self.undelayed + delay
        marks = np.flatnonzero(calls.step != NONE)
        until = end[marks]
        if free:
            begin = self.graph.begin
            reach = np.append(begin, np.maximum.accumulate(self.work_end))
            until = np.maximum(until, np.maximum(reach[calls.last_work[marks]], begin))
        done = dict(zip(calls.step[marks].tolist(), until.tolist(), strict=True))
        return Outcome(end, self.work_end, done)

    def one_by_one(self, begin: int, end: int) -> None:
        """Some acting calls in a loop, over lists, as it is all there is to the time of it."""
        span = slice(begin, end)
        calls = zip(
            self.thread[span].tolist(),
            self.ends[span].tolist(),
            self.own[span].tolist(),
            self.first[span].tolist(),
            self.last[span].tolist(),
            self.waits[span].tolist(),
            strict=True,
        )
        delay = self.delay
        run_work = self._worker(begin, end)
        for at, (thread, until, own, first, last, waits) in enumerate(calls, begin):
            late = delay[thread]
            if first != last:
                run_work(until - own + late, first, last)
            if waits:
                late = max(late, self._condition(at) - until)
                delay[thread] = late
            self.delayed[at] = late

    def _worker(self, begin: int, end: int) -> Callable[[int, int, int], None]:
        """Puts the work of some calls on its streams, in order."""
        start = int(self.first[begin])
        span = slice(start, int(self.last[end - 1]))
        stream, latency, gap = (
            column[span].tolist() for column in (self.stream, self.latency, self.gap)
        )
        needed = np.diff(self.first_need[span.start : span.stop + 1]).tolist()
        duration, runs = self.duration[span].tolist(), self.runs[span].tolist()
        free, ends = self.free, self.work_end.data

        def run_work(called: int, first: int, last: int) -> None:
            for work in range(first, last):
                j = work - start
                busy = free[stream[j]]
                if not runs[j]:
                    ends[work] = done = max(busy, self._freed(work)) if needed[j] else busy
                else:
                    start_at = max(called + latency[j], busy + gap[j])
                    if needed[j]:
                        start_at = max(start_at, self._ready(work))
                    ends[work] = done = start_at + duration[j]
                if done > busy:
                    free[stream[j]] = done

        return run_work

    def _ready(self, work: int) -> int:
        """When all is over that work waits for on other streams."""
        own = slice(self.first_need[work], self.first_need[work + 1])
        return int((self.work_end[self.needs[own]] + self.lag[own]).max())

    def _freed(self, work: int) -> int:
        """The same for what comes after work that is not run: without what it took to begin."""
        own = slice(self.first_need[work], self.first_need[work + 1])
        return int((self.work_end[self.needs[own]] + np.minimum(self.lag[own], 0)).max())

    def _condition(self, at: int) -> int:
        """Until when an acting call waits, if all of its work has been run."""
        stream = int(self.for_stream[at])
        if self.for_call[at] != NONE:
            until = int(self.ends[self.for_call[at]] + self.delayed[self.for_call[at]])
        elif stream == NONE:
            until = int(self.work_end[self.for_work[at]])
        else:
            until = max(self.free) if stream == ALL else self.free[stream]
        return until + int(self.after[at])

    def at_once(self, begin: int, end: int) -> None:
        """Acting calls of which none but the last waits for what is launched or done among them."""
        span = slice(begin, end)
        held = self.waits[span] & (self.for_stream[span] == NONE)
        held[-1] = False
        until = self._until(span, held) if held.any() else 0
        late = np.where(held, until + self.after[span] - self.ends[span], 0)
        threads = self.thread[span]
        delayed = np.empty(end - begin, np.int64)
        before = np.empty(end - begin, np.int64)
        for thread in np.unique(threads).tolist():
            own = np.flatnonzero(threads == thread)
            reach = np.maximum.accumulate(np.append(self.delay[thread], late[own]))
            before[own], delayed[own] = reach[:-1], reach[1:]
            self.delay[thread] = int(reach[-1])
        called = self.ends[span] - self.own[span] + before
        self.delayed[span] = delayed
        self._run_work(
            np.repeat(called, self.last[span] - self.first[span]), int(self.first[begin])
        )
        if self.waits[end - 1]:
            thread = int(threads[-1])
            wanted = self._condition(end - 1) - int(self.ends[end - 1])
            self.delay[thread] = max(self.delay[thread], wanted)
            self.delayed[end - 1] = self.delay[thread]

    def _until(self, span: slice, held: Flags) -> Ints:
        """When what calls wait for that was done before is over."""
        for_call = self.for_call[span]
        by_work = held & (for_call == NONE)
        until = np.zeros(held.size, np.int64)
        until[by_work] = self.work_end[self.for_work[span][by_work]]
        by_call = for_call[held & ~by_work]
        until[held & ~by_work] = self.ends[by_call] + self.delayed[by_call]
        return until

    def _run_work(self, called: Ints, first: int) -> None:
        """Work that needs none of each other but what its stream does before.

        The end of a stream's work is `max(end before + pass, own end on an idle stream)`: a running
        maximum, once the sum of all that passes is taken away.
        """
        span = slice(first, first + called.size)
        start = called + self.latency[span]
        freed = self._with_needs(start, first)
        streams = self.stream[span]
        for stream in np.unique(streams).tolist():
            own = np.flatnonzero(streams == stream)
            runs, duration = self.runs[span][own], self.duration[span][own]
            gap = self.gap[span][own]
            passing = np.cumsum(np.where(runs, np.maximum(gap + duration, 0), 0))
            alone = np.where(runs, start[own] + duration, freed[own]) - passing
            busy = np.maximum.accumulate(np.append(self.free[stream], alone))
            busy[1:] += passing
            ends = np.maximum(start[own], busy[:-1] + gap) + duration
            self.work_end[first + own] = np.where(runs, ends, busy[1:])
            self.free[stream] = int(busy[-1])

    def _with_needs(self, start: Ints, first: int) -> Ints:
        """Delays begins until all is over that work waits for on other streams.

        Returns:
            Until when work that is not run any more still holds its stream.
        """
        freed = np.full(start.size, _NEVER)
        needs = slice(*self.first_need[[first, first + start.size]].tolist())
        if needs.start == needs.stop:
            return freed
        by = self.graph.waits.work[needs] - first
        until = self.work_end[self.needs[needs]]
        np.maximum.at(start, by, until + self.lag[needs])
        np.maximum.at(freed, by, until + np.minimum(self.lag[needs], 0))
        return freed


def _undelayed(graph: DependencyGraph, costs: Costs) -> Ints:
    """When each call would end if none ever waited."""
    ends = np.empty(graph.calls.id.size, np.int64)
    takes = costs.before + costs.own
    for thread in range(graph.threads):
        own = graph.calls.thread == thread
        ends[own] = graph.begin + np.cumsum(takes[own])
    return ends
