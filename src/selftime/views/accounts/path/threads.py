"""Which threads of the host take turns, so that they are one serial program, and what they do."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.intervals import Intervals, union
from selftime.trace import Trace
from selftime.views.accounts.kept import kept
from selftime.views.accounts.named import is_named, of_kind
from selftime.views.accounts.steps.stepping import find_steps
from selftime.views.accounts.turns import taking_turns

__all__ = ["NO_PART", "Pieces", "Threads", "outermost", "threads_of"]

Ints = NDArray[np.int64]

NO_PART: Final = -1


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
    """The part on which steps end: that of their marks, else the busiest; NO_PART if none is."""
    work: dict[int, Pieces]
    """For each part the operators and calls that lie in no other, cut where threads overlap."""


@kept
def threads_of(trace: Trace) -> Threads:
    """The serial parts of a trace's host, the busiest first."""
    host = of_kind(trace, "host", ended=True)
    thread = trace.tracks["thread"].gather(host["track"]).cast(pl.Int64).to_numpy()
    works = host["category"].is_in(list(names.CALLS)).to_numpy() | is_named(host, _works)
    start = host["start"].to_numpy()
    end, number = start + host["duration"].to_numpy(), host["id"].cast(pl.Int64).to_numpy()
    order = np.flatnonzero(works)
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
    return Threads(part, _main(trace, part, work), work)


def _works(name: str) -> bool:
    """Whether a slice is work of its thread, and not a mark around what others may do."""
    return names.is_dispatched(name) or names.is_backward_node(name)


def _main(trace: Trace, part: Ints, work: dict[int, Pieces]) -> int:
    tracks = find_steps(trace)["track"].drop_nulls()
    marked = trace.tracks["thread"].gather(tracks[:1]).cast(pl.Int64).to_numpy()
    for found in part[marked].tolist():
        if found != NO_PART and work[found].id.size:
            return int(found)
    return 0 if work else NO_PART


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
