"""Runs a program: when each call returns and each work ends, if parts of it cost more or less."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from selftime.advice.replay.program import ALL, NOTHING, Program

__all__ = ["Costs", "Outcome", "costs_of", "simulate"]

Ints = NDArray[np.int64]


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

    One pass in the order of the entries: the order of launches stays as it was recorded. Lists and
    local names, as this loop is all there is to the time of a replay.
    """
    entries = program.entries
    part, before, own = entries.part.tolist(), costs.before.tolist(), costs.own.tolist()
    waits, after = costs.waits.tolist(), entries.after.tolist()
    for_work, for_stream = entries.waits_for.tolist(), entries.waits_stream.tolist()
    first, last = entries.first_work.tolist(), entries.last_work.tolist()
    mark = entries.mark.tolist()
    run_work = _worker(program, costs)
    clock = [program.begin] * program.parts
    ends: list[int] = []
    done: dict[int, int] = {}
    free, work_end = run_work.free, run_work.end
    for k, p in enumerate(part):
        begin = clock[p] + before[k]
        if first[k] != last[k]:
            run_work(begin, first[k], last[k])
        end = begin + own[k]
        if waits[k]:
            stream = for_stream[k]
            if stream == NOTHING:
                condition = work_end[for_work[k]]
            else:
                condition = max(free) if stream == ALL else free[stream]
            condition += after[k]
            end = max(end, condition)
        clock[p] = end
        ends.append(end)
        if mark[k] != NOTHING:
            done[mark[k]] = max(end, *free) if free else end
    return Outcome(np.array(ends, np.int64), np.array(work_end, np.int64), done)


class _worker:  # noqa: N801 - called like the function that it is
    """Puts work on its streams, in order."""

    __slots__ = (
        "duration",
        "end",
        "free",
        "gap",
        "latency",
        "needs",
        "needs_gap",
        "runs",
        "stream",
    )

    def __init__(self, program: Program, costs: Costs) -> None:
        work = program.work
        self.stream, self.latency, self.gap = (
            work.stream.tolist(),
            work.latency.tolist(),
            work.gap.tolist(),
        )
        self.needs, self.needs_gap = work.needs.tolist(), work.needs_gap.tolist()
        self.duration, self.runs = costs.duration.tolist(), costs.runs.tolist()
        self.free = [program.begin] * program.streams.height
        self.end = [program.begin] * work.id.size

    def __call__(self, begin: int, first: int, last: int) -> None:
        free, ends = self.free, self.end
        for j in range(first, last):
            stream = self.stream[j]
            busy = free[stream]
            if not self.runs[j]:
                ends[j] = busy
                continue
            start = begin + self.latency[j]
            queued = busy + self.gap[j]
            start = max(start, queued)
            if self.needs[j] != NOTHING:
                needed = ends[self.needs[j]] + self.needs_gap[j]
                start = max(start, needed)
            end = start + self.duration[j]
            ends[j] = end
            if end > busy:
                free[stream] = end
