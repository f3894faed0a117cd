"""A program run at once against the same program run entry by entry."""

import numpy as np
import polars as pl
import pytest

from selftime.advice.replay.program import ALL, NOTHING, Entries, Program, Work
from selftime.advice.replay.simulate import Costs, Outcome, simulate
from selftime.advice.replay.stretches import acting, stretches


def plainly(program: Program, costs: Costs) -> Outcome:
    """The definition: every entry and every work in turn."""
    entries, work = program.entries, program.work
    clock = [program.begin] * program.parts
    free = [program.begin] * program.streams.height
    work_end = [program.begin] * work.id.size
    ends, done = [], {}
    for k, part in enumerate(entries.part.tolist()):
        called = clock[part] + int(costs.before[k])
        for j in range(int(entries.first_work[k]), int(entries.last_work[k])):
            stream = int(work.stream[j])
            begin = max(called + int(work.latency[j]), free[stream] + int(work.gap[j]))
            if work.needs[j] != NOTHING:
                begin = max(begin, work_end[work.needs[j]] + int(work.needs_gap[j]))
            work_end[j] = begin + int(costs.duration[j]) if costs.runs[j] else free[stream]
            free[stream] = max(free[stream], work_end[j])
        end = called + int(costs.own[k])
        if costs.waits[k]:
            stream = int(entries.waits_stream[k])
            of_streams = max(free) if stream == ALL else free[stream]
            until = work_end[entries.waits_for[k]] if stream == NOTHING else of_streams
            end = max(end, until + int(entries.after[k]))
        clock[part] = end
        ends.append(end)
        if entries.mark[k] != NOTHING:
            done[int(entries.mark[k])] = max(end, *free)
    return Outcome(np.array(ends, np.int64), np.array(work_end, np.int64), done)


def drawn(seed: int, *, often: float) -> tuple[Program, Costs]:
    """A program whose waits for streams and needs of other work come so often."""
    random = np.random.default_rng(seed)
    n, parts, streams = (
        int(random.integers(low, high)) for low, high in ((0, 700), (1, 4), (1, 4))
    )
    counts = random.choice([0, 1, 1, 1, 3], n)
    last = np.cumsum(counts)
    m = int(last[-1]) if n else 0
    waits_for = np.where(random.random(n) < 0.5, last - 1 - random.integers(0, 150, n), NOTHING)
    waits_stream = np.where(random.random(n) < often, random.integers(0, streams, n), NOTHING)
    waits_stream[random.random(n) < often / 4] = ALL
    needs = np.arange(m) - random.integers(1, 40, m)
    needs = np.where(random.random(m) < often, np.maximum(needs, NOTHING), NOTHING)
    nothing = np.zeros(n, np.int64)
    entries = Entries(
        id=np.arange(n), part=random.integers(0, parts, n), start=nothing, end=nothing,
        before=random.integers(-50, 200, n), own=random.integers(0, 100, n),
        waits_for=np.where(waits_stream == NOTHING, np.maximum(waits_for, NOTHING), NOTHING),
        waits_stream=waits_stream, after=random.integers(-40, 40, n), first_work=last - counts,
        last_work=last, mark=np.where(random.random(n) < 0.05, np.arange(n), NOTHING),
    )  # fmt: skip
    work = Work(
        id=np.arange(m), stream=random.integers(0, streams, m), start=np.zeros(m, np.int64),
        end=np.zeros(m, np.int64), latency=random.integers(0, 300, m),
        gap=random.integers(-150, 50, m), needs=needs, needs_gap=random.integers(-20, 20, m),
    )  # fmt: skip
    numbers = pl.DataFrame({"number": range(streams)})
    program = Program(entries, work, int(random.integers(0, 1000)), parts, numbers, 0, 0, 0)
    waits = (entries.waits_for != NOTHING) | (waits_stream != NOTHING)
    costs = Costs(
        before=entries.before, own=entries.own, waits=waits & (random.random(n) < 0.9),
        duration=random.integers(0, 200, m), runs=random.random(m) < 0.95,
    )  # fmt: skip
    return program, costs


@pytest.mark.parametrize("often", [0.0, 0.01, 0.2])
def test_a_program_ends_when_it_does_entry_by_entry(often: float) -> None:
    at_once = 0
    for seed in range(40):
        program, costs = drawn(seed, often=often)
        found, expected = simulate(program, costs), plainly(program, costs)
        assert found.entry_end.tolist() == expected.entry_end.tolist()
        assert found.work_end.tolist() == expected.work_end.tolist()
        assert found.done == expected.done
        at_once += sum(part.at_once for part in stretches(program, acting(program)))
    assert at_once or often > 0.1
