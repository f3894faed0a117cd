"""A graph run at once against the same graph run call by call."""

import numpy as np
import pytest

from selftime.advice.replay.call_range import call_ranges, indices_of_acting_calls
from selftime.advice.replay.graph_simulation import GraphCosts, SimulatedTimes, simulate
from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_ALL_STREAMS,
    DependencyGraph,
    GraphCalls,
    GraphDeviceWork,
    GraphStreamWaits,
    LastDependenciesOfWork,
)
from selftime.nesting import NO_SLICE


def plainly(graph: DependencyGraph, costs: GraphCosts) -> SimulatedTimes:
    """The definition: every call and every work in turn."""
    calls, work, waits = graph.calls, graph.work, graph.stream_waits
    clock = [graph.begin] * graph.thread_count
    free = [graph.begin] * graph.stream_count
    work_end = [graph.begin] * work.id.size
    ends: list[int] = []
    done = {}
    for k, thread in enumerate(calls.thread.tolist()):
        called = clock[thread] + int(costs.before[k])
        for j in range(int(calls.first_work[k]), int(calls.last_work[k])):
            stream = int(work.stream[j])
            begin = max(
                called + int(work.launch_latency[j]),
                free[stream] + int(work.gap_after_previous_work[j]),
            )
            freed = free[stream]
            for one in np.flatnonzero(waits.work == j).tolist():
                until, lag = work_end[waits.awaited_work[one]], int(waits.lag[one])
                begin, freed = max(begin, until + lag), max(freed, until + min(lag, 0))
            work_end[j] = begin + int(costs.duration[j]) if costs.still_runs[j] else freed
            free[stream] = max(free[stream], work_end[j])
        end = called + int(costs.own_time[k])
        if costs.still_waits[k]:
            stream, call = int(calls.awaited_stream[k]), int(calls.awaited_call[k])
            if call != NO_SLICE:
                until = ends[call]
            elif stream == NO_SLICE:
                until = work_end[calls.awaited_work[k]]
            else:
                until = max(free) if stream == CODE_OF_ALL_STREAMS else free[stream]
            end = max(end, until + int(calls.delay_after_condition[k]))
        clock[thread] = end
        ends.append(end)
        if calls.step[k] != NO_SLICE:
            done[int(calls.step[k])] = max(end, *free)
    return SimulatedTimes(np.array(ends, np.int64), np.array(work_end, np.int64), done)


def drawn(seed: int, *, often: float) -> tuple[DependencyGraph, GraphCosts]:
    """A graph whose waits for streams, other work and other threads come so often."""
    random = np.random.default_rng(seed)
    n, threads, streams = (
        int(random.integers(low, high)) for low, high in ((0, 700), (1, 4), (1, 4))
    )
    counts = random.choice([0, 1, 1, 1, 3], n)
    last = np.cumsum(counts)
    m = int(last[-1]) if n else 0
    awaited_work = np.where(random.random(n) < 0.5, last - 1 - random.integers(0, 150, n), NO_SLICE)
    awaited_stream = np.where(random.random(n) < often, random.integers(0, streams, n), NO_SLICE)
    awaited_stream[random.random(n) < often / 4] = CODE_OF_ALL_STREAMS
    awaited_call = np.arange(n) - random.integers(1, 60, n)
    awaited_call = np.where(random.random(n) < often, np.maximum(awaited_call, NO_SLICE), NO_SLICE)
    alone = (awaited_stream == NO_SLICE) & (awaited_call == NO_SLICE)
    nothing, no = np.zeros(n, np.int64), np.zeros(n, bool)
    calls = GraphCalls(
        id=np.arange(n), wait_slice=np.arange(n), thread=random.integers(0, threads, n),
        start=nothing, end=nothing, host_time_before=random.integers(-50, 200, n),
        own_time=random.integers(0, 100, n),
        awaited_work=np.where(alone, np.maximum(awaited_work, NO_SLICE), NO_SLICE),
        awaited_stream=np.where(awaited_call == NO_SLICE, awaited_stream, NO_SLICE),
        awaited_call=awaited_call, delay_after_condition=random.integers(-40, 40, n),
        is_condition_recorded=no, released_by=nothing,
        first_work=last - counts, last_work=last, step=np.where(random.random(n) < 0.05,
        np.arange(n), NO_SLICE), is_collective=no,
    )  # fmt: skip
    work = GraphDeviceWork(
        id=np.arange(m), stream=random.integers(0, streams, m), start=np.zeros(m, np.int64),
        end=np.zeros(m, np.int64), launch_latency=random.integers(0, 300, m),
        gap_after_previous_work=random.integers(-150, 50, m),
    )  # fmt: skip
    waiting = np.sort(random.integers(0, max(m, 1), int(often * m)))
    needs = waiting - random.integers(1, 40, waiting.size)
    waits = GraphStreamWaits(
        waiting[needs >= 0], needs[needs >= 0], random.integers(-20, 20, int((needs >= 0).sum())),
        np.zeros(int((needs >= 0).sum()), bool),
    )  # fmt: skip
    zeros = np.zeros(m, np.int64)
    bindings = LastDependenciesOfWork(zeros, zeros, zeros, zeros, zeros.astype(bool))
    begin = int(random.integers(0, 1000))
    graph = DependencyGraph(calls, work, waits, bindings, begin, threads, streams)
    waits_at_all = (
        (calls.awaited_work != NO_SLICE)
        | (calls.awaited_stream != NO_SLICE)
        | (awaited_call != NO_SLICE)
    )
    costs = GraphCosts(
        before=calls.host_time_before, own_time=calls.own_time,
        still_waits=waits_at_all & (random.random(n) < 0.9),
        duration=random.integers(0, 200, m), still_runs=random.random(m) < 0.9,
    )  # fmt: skip
    return graph, costs


@pytest.mark.parametrize("often", [0.0, 0.01, 0.2])
def test_a_graph_ends_when_it_does_call_by_call(often: float) -> None:
    at_once = 0
    for seed in range(40):
        graph, costs = drawn(seed, often=often)
        found, expected = simulate(graph, costs), plainly(graph, costs)
        assert found.call_end.tolist() == expected.call_end.tolist()
        assert found.work_end.tolist() == expected.work_end.tolist()
        assert found.done == expected.done
        at_once += sum(
            part.is_vectorised for part in call_ranges(graph, indices_of_acting_calls(graph))
        )
    assert at_once or often > 0.1
