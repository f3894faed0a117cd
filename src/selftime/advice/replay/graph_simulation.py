"""Simulates when host calls and device work end, given new durations in a dependency graph.

It stays beside the changes that it answers for: what is recorded needs no simulation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime.advice.replay.call_range import ActingCalls, acting_calls, waiting_calls
from selftime.analysis.graph.dependency_graphs import CODE_OF_ALL_STREAMS, DependencyGraph
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE

_TIME_BEFORE_ALL_OTHERS_NS: Final = -(1 << 61)
"""Time in ns that is earlier than all others: the end of device work that was removed."""


@dataclass(frozen=True, slots=True)
class GraphCosts:
    """Durations in ns of n host calls and m device activities, and which of them still occur."""

    before: Ints
    """Host time between the previous call on the thread and each call, in ns, shape (n,)."""
    own_time: Ints
    """Duration of each call without its wait, in ns, shape (n,)."""
    still_waits: Flags
    """Whether each call still waits for what it waited for when recorded, shape (n,)."""
    duration: Ints
    """Duration of each kernel, copy or memset on its device, in ns, shape (m,)."""
    still_runs: Flags
    """Whether each kernel, copy or memset still runs, shape (m,)."""


@dataclass(frozen=True, slots=True)
class SimulatedTimes:
    """The end times of a simulated program, in ns on the trace's clock."""

    call_end: Ints
    """End of each host call in ns, shape (n,)."""
    work_end: Ints
    """End of each kernel, copy or memset in ns, shape (m,)."""
    done: dict[int, int]
    """End in ns of each step, by index: of its host time and of all device work launched until
    then."""


def recorded_costs(graph: DependencyGraph) -> GraphCosts:
    """Returns the recorded durations of a graph's calls and device work, with all waits."""
    calls, work = graph.calls, graph.work
    return GraphCosts(
        before=calls.host_time_before,
        own_time=calls.own_time,
        still_waits=waiting_calls(graph),
        duration=work.end - work.start,
        still_runs=np.ones(work.id.size, bool),
    )


def simulate(
    graph: DependencyGraph, costs: GraphCosts, acting: ActingCalls | None = None
) -> SimulatedTimes:
    """Returns when calls, device work and steps end if they take the durations in `costs`.

    The order of launches stays as it was recorded. Work that is not run any more takes no time,
    and what comes after it on its stream still waits for the other streams that it waited for.

    Args:
        graph: The calls and device work.
        costs: What they take.
        acting: The graph's `acting_calls`, if known from an earlier simulation.
    """
    acting = acting or acting_calls(graph)
    run = _Simulation(graph, costs, acting.indices)
    for stretch in acting.ranges:
        if stretch.is_vectorised:
            run.simulate_with_arrays(stretch.begin, stretch.end)
        else:
            run.simulate_in_loop(stretch.begin, stretch.end)
    return run.end_times()


class _Simulation:
    """State of a simulation: how late each host thread is, and when each stream becomes free.

    So each call ends at its time without any wait, plus the delay of its thread.
    """

    def __init__(self, graph: DependencyGraph, costs: GraphCosts, acting_indices: Ints) -> None:
        calls, work = graph.calls, graph.work
        self.graph, self.costs = graph, costs
        self.undelayed = _call_ends_without_waits(graph, costs)
        self.acts = at = acting_indices
        self.thread, self.own_time = calls.thread[at], costs.own_time[at]
        self.ends = self.undelayed[at]
        self.waits, self.after = costs.still_waits[at], calls.delay_after_condition[at]
        self.for_work, self.for_stream = calls.awaited_work[at], calls.awaited_stream[at]
        self.for_call = np.searchsorted(at, calls.awaited_call[at])
        self.for_call[calls.awaited_call[at] == NO_SLICE] = NO_SLICE
        self.first, self.last = calls.first_work[at], calls.last_work[at]
        self.stream, self.latency, self.gap = (
            work.stream,
            work.launch_latency,
            work.gap_after_previous_work,
        )
        self.needs, self.lag = graph.stream_waits.awaited_work, graph.stream_waits.lag
        self.first_need = np.searchsorted(graph.stream_waits.work, np.arange(work.id.size + 1))
        self.duration, self.runs = costs.duration, costs.still_runs
        self.delay = [0] * graph.thread_count
        """How late each host thread is by now, in ns, compared with a program that never waits."""
        self.delayed = np.zeros(at.size, np.int64)
        """How late the call's thread is after each call, in ns, compared with a program that never
        waits."""
        self.free = [graph.begin] * graph.stream_count
        """Time in ns at which each device stream becomes free."""
        self.work_end = np.full(work.id.size, graph.begin, np.int64)

    def end_times(self) -> SimulatedTimes:
        """Returns the end times of all calls, device work and steps."""
        calls, free = self.graph.calls, self.free
        delay = np.zeros(calls.id.size, np.int64)
        delay[self.acts] = self.delayed
        for thread in range(self.graph.thread_count):
            own = calls.thread == thread
            delay[own] = np.maximum.accumulate(delay[own])
        end = self.undelayed + delay
        marks = np.flatnonzero(calls.step != NO_SLICE)
        until = end[marks]
        if free:
            begin = self.graph.begin
            reach = np.append(begin, np.maximum.accumulate(self.work_end))
            until = np.maximum(until, np.maximum(reach[calls.last_work[marks]], begin))
        done = dict(zip(calls.step[marks].tolist(), until.tolist(), strict=True))
        return SimulatedTimes(end, self.work_end, done)

    def simulate_in_loop(self, first_call: int, end_call: int) -> None:
        """Simulates a range of host calls one after the other in a Python loop."""
        span = slice(first_call, end_call)
        calls = zip(
            self.thread[span].tolist(),
            self.ends[span].tolist(),
            self.own_time[span].tolist(),
            self.first[span].tolist(),
            self.last[span].tolist(),
            self.waits[span].tolist(),
            strict=True,
        )
        delay = self.delay
        run_work = self._device_work_runner(first_call, end_call)
        for at, (thread, until, own, first, last, waits) in enumerate(calls, first_call):
            late = delay[thread]
            if first != last:
                run_work(until - own + late, first, last)
            if waits:
                late = max(late, self._wait_end_ns(at) - until)
                delay[thread] = late
            self.delayed[at] = late

    def _device_work_runner(
        self, first_call: int, end_call: int
    ) -> Callable[[int, int, int], None]:
        """Returns a function that simulates the device work which a range of calls launches."""
        start = int(self.first[first_call])
        span = slice(start, int(self.last[end_call - 1]))
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
                    ends[work] = done = (
                        max(busy, self._removed_work_end_ns(work)) if needed[j] else busy
                    )
                else:
                    start_at = max(called + latency[j], busy + gap[j])
                    if needed[j]:
                        start_at = max(start_at, self._needed_work_end_ns(work))
                    ends[work] = done = start_at + duration[j]
                if done > busy:
                    free[stream[j]] = done

        return run_work

    def _needed_work_end_ns(self, work_index: int) -> int:
        """Returns the end in ns of the last work, on other streams, that device work waits for."""
        own = slice(self.first_need[work_index], self.first_need[work_index + 1])
        return int((self.work_end[self.needs[own]] + self.lag[own]).max())

    def _removed_work_end_ns(self, work_index: int) -> int:
        """Returns the end in ns of the last work that removed device work would have waited for."""
        own = slice(self.first_need[work_index], self.first_need[work_index + 1])
        return int((self.work_end[self.needs[own]] + np.minimum(self.lag[own], 0)).max())

    def _wait_end_ns(self, call_index: int) -> int:
        """Returns the end in ns of a call's wait; all earlier calls must be simulated already."""
        stream = int(self.for_stream[call_index])
        if self.for_call[call_index] != NO_SLICE:
            until = int(
                self.ends[self.for_call[call_index]] + self.delayed[self.for_call[call_index]]
            )
        elif stream == NO_SLICE:
            until = int(self.work_end[self.for_work[call_index]])
        else:
            until = max(self.free) if stream == CODE_OF_ALL_STREAMS else self.free[stream]
        return until + int(self.after[call_index])

    def simulate_with_arrays(self, first_call: int, end_call: int) -> None:
        """Simulates calls with arrays; only the last call may wait for work launched among them."""
        span = slice(first_call, end_call)
        held = self.waits[span] & (self.for_stream[span] == NO_SLICE)
        held[-1] = False
        until = self._awaited_earlier_work_or_call_ends(span, held) if held.any() else 0
        late = np.where(held, until + self.after[span] - self.ends[span], 0)
        threads = self.thread[span]
        delayed = np.empty(end_call - first_call, np.int64)
        before = np.empty(end_call - first_call, np.int64)
        for thread in np.unique(threads).tolist():
            own = np.flatnonzero(threads == thread)
            reach = np.maximum.accumulate(np.append(self.delay[thread], late[own]))
            before[own], delayed[own] = reach[:-1], reach[1:]
            self.delay[thread] = int(reach[-1])
        called = self.ends[span] - self.own_time[span] + before
        self.delayed[span] = delayed
        self._simulate_work_with_arrays(
            np.repeat(called, self.last[span] - self.first[span]), int(self.first[first_call])
        )
        if self.waits[end_call - 1]:
            thread = int(threads[-1])
            wanted = self._wait_end_ns(end_call - 1) - int(self.ends[end_call - 1])
            self.delay[thread] = max(self.delay[thread], wanted)
            self.delayed[end_call - 1] = self.delay[thread]

    def _awaited_earlier_work_or_call_ends(self, call_range: slice, is_waiting: Flags) -> Ints:
        """Returns for each waiting call the end in ns of what it waits for from earlier ranges."""
        for_call = self.for_call[call_range]
        by_work = is_waiting & (for_call == NO_SLICE)
        until = np.zeros(is_waiting.size, np.int64)
        until[by_work] = self.work_end[self.for_work[call_range][by_work]]
        by_call = for_call[is_waiting & ~by_work]
        until[is_waiting & ~by_work] = self.ends[by_call] + self.delayed[by_call]
        return until

    def _simulate_work_with_arrays(self, call_times: Ints, first_work: int) -> None:
        """Simulates device work that waits only for its own stream and for earlier ranges' work.

        The end of a stream's work is `max(end before + pass, own end on an idle stream)`: a running
        maximum, once the sum of all that passes is taken away.
        """
        span = slice(first_work, first_work + call_times.size)
        start = call_times + self.latency[span]
        freed = self._delay_until_needed_work_ends(start, first_work)
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
            self.work_end[first_work + own] = np.where(runs, ends, busy[1:])
            self.free[stream] = int(busy[-1])

    def _delay_until_needed_work_ends(self, work_starts: Ints, first_work: int) -> Ints:
        """Delays `work_starts` in place until the awaited work of other streams has ended.

        Returns:
            When removed work frees its stream.
        """
        freed = np.full(work_starts.size, _TIME_BEFORE_ALL_OTHERS_NS)
        needs = slice(*self.first_need[[first_work, first_work + work_starts.size]].tolist())
        if needs.start == needs.stop:
            return freed
        by = self.graph.stream_waits.work[needs] - first_work
        until = self.work_end[self.needs[needs]]
        np.maximum.at(work_starts, by, until + self.lag[needs])
        np.maximum.at(freed, by, until + np.minimum(self.lag[needs], 0))
        return freed


def _call_ends_without_waits(graph: DependencyGraph, costs: GraphCosts) -> Ints:
    """Returns the end of each host call in ns if no call ever waited."""
    ends = np.empty(graph.calls.id.size, np.int64)
    takes = costs.before + costs.own_time
    for thread in range(graph.thread_count):
        own = graph.calls.thread == thread
        ends[own] = graph.begin + np.cumsum(takes[own])
    return ends
