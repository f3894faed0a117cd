"""What holds a host up, and until when: device work that it waits for, and what other threads do.

A wait ends with device work: for a copy its own, else the last of the stream that is waited for, or
of any if the trace does not name one, that was done when the call returned. A launch onto a full
queue waits for room. A wait that began after that work was done held nothing.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.launch_queues import FULL, queued_launches
from selftime.analysis.graph.nodes import HOST, NEVER, Nodes, nodes_of
from selftime.analysis.graph.segment_kinds import SLACK
from selftime.analysis.graph.serial_threads import Pieces, Threads, threads_of
from selftime.analysis.idle.host_waits import host_waits
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE
from selftime.trace import Trace

_LOOK_BACK: Final = 4
"""So many ends before an instant are looked at for one that fits."""


def last_done(nodes: Nodes, among: Ints, when: Ints, limit: Ints, *, slack: int = 0) -> Ints:
    """Of some nodes the last that was done by each instant, and launched before each limit.

    Args:
        nodes: All nodes.
        among: Which of them may be it.
        when: The instants, in ns, shape (m,).
        limit: Before which it was launched, in ns, shape (m,).
        slack: How much later it may have ended, in ns: it began before the instant in any case.
    """
    real = among[nodes.end[among] > nodes.start[among]]
    order = real[np.argsort(nodes.end[real], kind="stable")]
    at = np.searchsorted(nodes.end[order], when + slack, side="right") - 1
    found = np.full(when.size, NONE, np.int64)
    for _ in range(_LOOK_BACK if order.size else 0):
        candidate = order[np.maximum(at, 0)]
        fits = (found == NONE) & (at >= 0) & (nodes.start[candidate] < when)
        found = np.where(fits & (nodes.launched[candidate] < limit), candidate, found)
        at -= 1
    return found


@dataclass(frozen=True, slots=True)
class _Holds:
    """What held a part of the host, in order of release."""

    release: Ints
    """When the host could go on, in ns."""
    node: Ints
    """What it had waited for: a node that began before."""


@dataclass(frozen=True, slots=True)
class HostEdges:
    """The ways back from some instants on the host; arrays of shape (m,), times in ns."""

    hop: Ints
    """Since when the part itself had been at work; before it the main part is followed."""
    enter: Ints
    """When the host could go on; NEVER if nothing held it."""
    next: Ints
    """The node that it had waited for, or NONE."""


@dataclass(frozen=True, slots=True)
class Host:
    """What held each part of the host of a trace."""

    threads: Threads
    holds: dict[int, _Holds]

    def back(self, part: Ints, when: Ints) -> HostEdges:
        """From each instant on a part of the host to what held it last."""
        hop = when.copy()
        enter, found = (np.full(when.size, fill, np.int64) for fill in (NEVER, NONE))
        for number in np.unique(part).tolist():
            at = np.flatnonzero(part == number)
            enter[at], found[at] = self._last(number, when[at])
            if number == self.threads.main:
                hop[at] = enter[at]
                continue
            hop[at] = self._since(number, when[at])
            idle = at[enter[at] < hop[at]]
            enter[idle], found[idle] = self._last(self.threads.main, hop[idle])
        return HostEdges(np.maximum(hop, enter), enter, found)

    def _last(self, part: int, when: Ints) -> tuple[Ints, Ints]:
        holds = self.holds.get(part)
        if holds is None or not holds.release.size:
            return np.full(when.size, NEVER), np.full(when.size, NONE)
        at = np.searchsorted(holds.release, when, side="right") - 1
        known = at >= 0
        return (
            np.where(known, holds.release[np.maximum(at, 0)], NEVER),
            np.where(known, holds.node[np.maximum(at, 0)], NONE),
        )

    def _since(self, part: int, when: Ints) -> Ints:
        """The begin of the work that a part is in at each instant, the instant where it is in none.

        Operators that follow each other closely are one: between them runs the program.
        """
        work = self.threads.work.get(part)
        if work is None or not work.id.size:
            return when
        opens = np.append(True, work.start[1:] > work.end[:-1] + SLACK)
        begin, end = work.start[opens], work.end[np.append(opens[1:], True)]
        at = np.searchsorted(begin, when, side="left") - 1
        inside = (at >= 0) & (when <= end[np.maximum(at, 0)] + SLACK)
        return np.where(inside, begin[np.maximum(at, 0)], when)


@cached_per_trace
def host_of(trace: Trace) -> Host:
    """What held the host of a trace."""
    nodes, threads = nodes_of(trace), threads_of(trace)
    tables = [_of_waits(trace, nodes), _of_full_queues(trace, nodes)]
    rows = pl.concat(tables)
    thread = trace.tracks["thread"].gather(trace.slices["track"].gather(rows["call"]))
    part = threads.part[thread.cast(pl.Int64).to_numpy()]
    release, node = rows["release"].to_numpy(), rows["node"].to_numpy()
    release, node, part = _with_exchanges(nodes, threads, release, node, part)
    order = np.lexsort((node, release))
    holds = {
        number: _Holds(release[own], node[own])
        for number in np.unique(part).tolist()
        for own in [order[part[order] == number]]
    }
    return Host(threads, holds)


def _of_waits(trace: Trace, nodes: Nodes) -> pl.DataFrame:
    held = host_waits(trace)
    begin, end = held["start"].to_numpy(), held["end"].to_numpy()
    on_device = np.flatnonzero(nodes.stream != HOST)
    found = np.full(held.height, NONE, np.int64)
    named = held["stream"].cast(pl.Int64)
    for stream in named.unique().to_list():
        asked = named.is_null().arg_true().to_numpy()
        among = on_device
        if stream is not None:
            asked = (named == stream).arg_true().to_numpy()
            numbers = [n for (_, s), n in nodes.streams.items() if s == stream]
            among = np.flatnonzero(np.isin(nodes.stream, numbers))
        found[asked] = last_done(nodes, among, end[asked], end[asked], slack=SLACK)
    return _held(held["id"], begin, end, nodes, found)


def _of_full_queues(trace: Trace, nodes: Nodes) -> pl.DataFrame:
    """Launches that began when their stream held as many as fit."""
    full = queued_launches(trace).filter((pl.col("depth") >= FULL) & pl.col("host").is_not_null())
    begin = full["start"].to_numpy()
    end = begin + full["host"].to_numpy()
    stream = np.array(
        [nodes.streams[place] for place in full.select("device", "stream").iter_rows()], np.int64
    )
    found = np.full(full.height, NONE, np.int64)
    for number in np.unique(stream).tolist():
        asked = np.flatnonzero(stream == number)
        among = np.flatnonzero(nodes.stream == number)
        found[asked] = last_done(nodes, among, end[asked], begin[asked])
    return _held(full["id"], begin, end, nodes, found)


def _held(call: pl.Series, begin: Ints, end: Ints, nodes: Nodes, node: Ints) -> pl.DataFrame:
    """The calls that were held: call, release, node."""
    release = np.minimum(nodes.end[node], end) if nodes.id.size else end
    table = pl.DataFrame({"call": call, "release": release, "node": node})
    return table.filter(pl.Series((node != NONE) & (release > begin), dtype=pl.Boolean))


def _with_exchanges(
    nodes: Nodes, threads: Threads, release: Ints, node: Ints, part: Ints
) -> tuple[Ints, Ints, Ints]:
    """Add collectives of the host: they hold their own part, and the main part where it is idle."""
    own = np.flatnonzero((nodes.stream == HOST) & (nodes.end > nodes.start))
    others = own[nodes.part[own] != threads.main]
    working = threads.work.get(threads.main)
    waited = others if working is None else others[~_works_at(working, nodes.end[others])]
    return (
        np.concatenate([release, nodes.end[own], nodes.end[waited]]),
        np.concatenate([node, own, waited]),
        np.concatenate([part, nodes.part[own], np.full(waited.size, threads.main)]),
    )


def _works_at(work: Pieces, when: Ints) -> Flags:
    """Whether a part was in work at the end of each instant's last nanosecond and had been."""
    if not work.id.size:
        return np.zeros(when.size, bool)
    at = np.searchsorted(work.start, when, side="left") - 1
    return np.asarray((at >= 0) & (work.end[np.maximum(at, 0)] > when))
