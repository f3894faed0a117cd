"""Which threads of the host take turns, so that they are one serial program, and what they do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.segment_kinds import SLACK
from selftime.analysis.host_work import is_work
from selftime.analysis.main_thread import main_thread
from selftime.analysis.slice_filters import slices_on
from selftime.arrays import Ints
from selftime.intervals import Intervals, intersect, length, union
from selftime.nesting import NONE
from selftime.trace import Trace

_TURNS: Final = 0.1
"""Threads that work at once for less than this share of the lesser one's time take turns.

Autograd's thread works while the one that called `backward` waits for it.
"""


def taking_turns(busy: Mapping[int, Intervals]) -> dict[int, int]:
    """The serial thread of each thread by its number, 0 for that of the busiest.

    Args:
        busy: When each thread works. One that never does belongs to the busiest.
    """
    joint: list[Intervals] = []
    found: dict[int, int] = {}
    for thread in sorted(busy, key=lambda t: (-length(busy[t]), t)):
        own = busy[thread]
        for number, others in enumerate(joint):
            if length(intersect(own, others)) <= _TURNS * min(length(own), length(others)):
                starts = np.concatenate([others.starts, own.starts])
                joint[number] = union(starts, np.concatenate([others.ends, own.ends]))
                found[thread] = number
                break
        else:
            found[thread] = len(joint)
            joint.append(own)
    return found


@dataclass(frozen=True, slots=True)
class DisjointSlices:
    """Slices in order, cut so that none overlap; arrays of shape (n,), times in ns."""

    start: Ints
    end: Ints
    id: Ints

    @property
    def times(self) -> Intervals:
        return Intervals(self.start, self.end)


@dataclass(frozen=True, slots=True)
class SerialThreads:
    """The serial threads of a host: each is one thread, or several that take turns."""

    number: Ints
    """For each thread by its number its serial thread; NONE if it is of no host."""
    main: int
    """The serial thread on which steps end: that of the main thread; NONE if there is none."""
    work: dict[int, DisjointSlices]
    """For each serial thread the operators and calls that lie in no other."""

    def busy_since(self, number: int, when: Ints) -> Ints:
        """The begin of the work that a serial thread is in at each instant.

        Operators that follow each other closely are one: between them runs the program. In no work
        it is the instant itself.
        """
        work = self.work.get(number)
        if work is None or not work.id.size:
            return when
        opens = np.append(True, work.start[1:] > work.end[:-1] + SLACK)
        begin, end = work.start[opens], work.end[np.append(opens[1:], True)]
        at = np.searchsorted(begin, when, side="left") - 1
        inside = (at >= 0) & (when <= end[np.maximum(at, 0)] + SLACK)
        return np.where(inside, begin[np.maximum(at, 0)], when)


@cached_per_trace
def serial_threads_of(trace: Trace) -> SerialThreads:
    """The serial threads of a trace's host, the busiest first."""
    host = slices_on(trace, "host", ended=True)
    thread = trace.tracks["thread"].gather(host["track"]).cast(pl.Int64).to_numpy()
    start = host["start"].to_numpy()
    end, number = start + host["duration"].to_numpy(), host["id"].cast(pl.Int64).to_numpy()
    order = np.flatnonzero(is_work(host))
    on_host = trace.tracks.filter(pl.col("kind").is_in(["host", "python"]))["thread"]
    rows = {t: order[thread[order] == t] for t in on_host.unique().sort().to_list()}
    busy = {t: union(start[own], end[own]) for t, own in rows.items()}
    found = taking_turns(busy)
    threads = trace.tracks["thread"].to_numpy()
    serial = np.full(int(threads.max(initial=0)) + 1, NONE)
    serial[list(found)] = list(found.values())
    work = {}
    for joint in set(found.values()):
        own = np.sort(np.concatenate([rows[t] for t in found if found[t] == joint]))
        work[joint] = outermost(start[own], end[own], number[own])
    main = main_thread(trace)
    return SerialThreads(serial, NONE if main is None else int(serial[main]), work)


def outermost(start: Ints, end: Ints, number: Ints) -> DisjointSlices:
    """Slices that no earlier one covers, without what earlier ones cover.

    Args:
        start: Begin of each, ascending, shape (n,).
        end: End of each.
        number: The slice.
    """
    order = np.lexsort((-end, start))
    start, end, number = start[order], end[order], number[order]
    reach = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(end))[:-1]
    begin = np.maximum(start, reach)
    open_ = end > begin
    return DisjointSlices(begin[open_], end[open_], number[open_])
