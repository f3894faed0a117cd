"""Which threads of the host take turns, so that they are one serial program, and what they do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.host_work import is_work
from selftime.analysis.main_thread import main_thread
from selftime.analysis.slice_filters import slices_on
from selftime.arrays import Ints
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace

_TURNS: Final = 0.1
"""Threads that work at once for less than this share of the lesser one's time take turns.

Autograd's thread works while the one that called `backward` waits for it.
"""


NO_PART: Final = -1


def taking_turns(busy: Mapping[int, Intervals]) -> dict[int, int]:
    """The part of each thread by its number, 0 for that of the busiest.

    Args:
        busy: When each thread works. One that never does belongs to the busiest.
    """
    parts: list[Intervals] = []
    found: dict[int, int] = {}
    for thread in sorted(busy, key=lambda t: (-length(busy[t]), t)):
        own = busy[thread]
        for number, others in enumerate(parts):
            if length(intersect(own, others)) <= _TURNS * min(length(own), length(others)):
                starts = np.concatenate([others.starts, own.starts])
                parts[number] = union(starts, np.concatenate([others.ends, own.ends]))
                found[thread] = number
                break
        else:
            found[thread] = len(parts)
            parts.append(own)
    return found


@dataclass(frozen=True, slots=True)
class Pieces:
    """Slices, or parts of them, that are in order and apart; arrays of shape (n,), times in ns."""

    start: Ints
    end: Ints
    id: Ints

    @property
    def times(self) -> Intervals:
        return Intervals(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Threads:
    """The serial parts of a host."""

    part: Ints
    """For each thread by its number the part that it belongs to; NO_PART if of no host."""
    main: int
    """The part on which steps end: that of the main thread; NO_PART if none is."""
    work: dict[int, Pieces]
    """For each part the operators and calls that lie in no other, cut where threads overlap."""


@cached_per_trace
def threads_of(trace: Trace) -> Threads:
    """The serial parts of a trace's host, the busiest first."""
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
    part = np.full(int(threads.max(initial=0)) + 1, NO_PART)
    part[list(found)] = list(found.values())
    work = {}
    for p in set(found.values()):
        own = np.sort(np.concatenate([rows[t] for t in found if found[t] == p]))
        work[p] = outermost(start[own], end[own], number[own])
    main = main_thread(trace)
    return Threads(part, NO_PART if main is None else int(part[main]), work)


def outermost(start: Ints, end: Ints, number: Ints) -> Pieces:
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
    return Pieces(begin[open_], end[open_], number[open_])
