"""What work on a device waited for: its launch, its stream, or work of another stream."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.graph.graph import Bindings, StreamWaits, Work
from selftime.analysis.graph.segment_kinds import LINK, NEVER, SLACK
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE

_LATENCY: Final = 6_000
_GAP: Final = 1_000
"""Typical times, in ns, where a trace has no launch to tell them by: those of NVIDIA's GPUs."""
_NO_LAUNCH: Final = -(1 << 60)
"""The latency of work whose launch is not known: it never waits for that."""
_LOOK_BACK: Final = 4
"""So many ends before an instant are looked at for one that fits."""


class Device:
    """The work of a trace in the order of its launches.

    Args:
        placed: One row for each work: id, start, end, kind (its code), number (of the stream), call
            (that launched it, or before whose work it ran), known (whether that launched it).
        called: When each call began, in ns, shape (n,).
        begin: When the first call began.
    """

    def __init__(self, placed: pl.DataFrame, called: Ints, begin: int) -> None:
        self.id = placed["id"].cast(pl.Int64).to_numpy()
        self.kind = placed["kind"].to_numpy()
        self.stream = placed["number"].to_numpy()
        self.start, self.end = placed["start"].to_numpy(), placed["end"].to_numpy()
        self.known = placed["known"].to_numpy()
        self.call = placed["call"].to_numpy()
        self.launched = called[self.call] if called.size else np.full(self.id.size, begin, np.int64)
        self.place, self.before = _queues(self.stream, self.end)
        ends = np.append(self.end, begin)
        self.free = np.maximum(ends[self.before], begin)
        self.since_launch = self.start - self.launched
        self.since_free = self.start - self.free
        self.by_end = np.argsort(self.end, kind="stable")
        idle = self.known & (self.free <= self.launched) & (self.since_launch >= 0)
        queued = self.known & (self.free > self.launched + SLACK) & (self.since_free >= 0)
        may_wait = self._may_be_held()
        plain = idle & ~may_wait
        latencies = self.since_launch[plain if plain.any() else idle]
        self.typical_latency = _median(latencies, _LATENCY)
        self.typical_gap = _median(self.since_free[queued & ~may_wait], _GAP)

    def last_before(self, limit: Ints, when: Ints, among: Flags | None = None) -> Ints:
        """Of the work launched before each limit, the last that was done by each instant, or NONE.

        Args:
            limit: How much work was launched before, shape (k,).
            when: The instants, in ns.
            among: Which work is asked for, shape (m,); all if it is not told.
        """
        order = self.by_end if among is None else self.by_end[among[self.by_end]]
        at = np.searchsorted(self.end[order], when, side="right") - 1
        found = np.full(when.size, NONE, np.int64)
        for _ in range(_LOOK_BACK if order.size else 0):
            candidate = order[np.maximum(at, 0)]
            open_ = (found == NONE) & (at >= 0)
            found = np.where(open_ & (candidate < limit), candidate, found)
            at = at - 1
        return found

    def _may_be_held(self) -> Flags:
        """Whether work of another stream ended between a work's launch and its begin, just before.

        Such work may have waited for that: its latency is not that of a launch.
        """
        if not self.id.size:
            return np.zeros(0, bool)
        at = np.searchsorted(self.end[self.by_end], self.start, side="right") - 1
        last = self.by_end[np.maximum(at, 0)]
        done = self.end[last]
        return np.asarray(
            (at >= 0)
            & (self.stream[last] != self.stream)
            & (done > self.launched)
            & (self.start - done <= SLACK)
        )

    def most_held(self) -> int:
        """The most work that a stream held at a launch."""
        most = 0
        for stream in np.unique(self.stream):
            own = np.flatnonzero((self.stream == stream) & self.known)
            done = np.searchsorted(np.sort(self.end[own]), self.launched[own], side="right")
            most = max(most, int((np.arange(own.size) - done).max(initial=0)))
        return most

    def in_turn(self) -> tuple[Ints, Ints, Ints]:
        """Of launch and stream what was over last: when, the work before or NONE, and the link."""
        start = self.start
        known = self.before != NONE
        known[known] = start[self.before[known]] <= start[known]
        before = np.where(known, self.before, NONE)
        free = np.where(known, np.minimum(np.append(self.end, 0)[before], start), NEVER)
        launched = np.where(self.known, np.minimum(self.launched, start), NEVER)
        by_launch = self.known & (launched >= free)
        link = np.where(before == NONE, LINK["unknown"], LINK["stream"])
        return (
            np.where(by_launch, launched, free),
            np.where(by_launch, NONE, before),
            np.where(by_launch, LINK["launch"], link),
        )

    def read(self, needs: StreamWaits, made: Flags) -> tuple[Work, StreamWaits, Bindings]:
        """The work, its waits with their lags, and which dependency was over last.

        Args:
            needs: The waits for other streams; their lags are not read.
            made: Whose stream was made to wait for what no record tells.
        """
        since = self.start[needs.work] - self.end[needs.needs]
        when, source, link = self.in_turn()
        reached = np.minimum(self.end[needs.needs], self.start[needs.work])
        order = np.argsort(reached, kind="stable")  # what ends last is set last
        latest = np.full(self.id.size, NONE)
        latest[needs.work[order]] = order
        last = np.append(reached, NEVER)[latest]
        waited = np.flatnonzero((last > when) & (latest != NONE))
        binding = latest[waited]
        source[waited] = needs.needs[binding]
        link[waited] = np.where(needs.recorded[binding], LINK["event"], LINK["inferred"])
        lag = np.minimum(self.typical_gap, since)
        lag[binding] = since[binding]
        work = self._with_lags(link)
        waits = StreamWaits(needs.work, needs.needs, lag, needs.recorded)
        call = np.where(self.known, self.call, NONE)
        return work, waits, Bindings(link, source, call, self.kind, made)

    def _with_lags(self, link: Ints) -> Work:
        by_launch = link == LINK["launch"]
        by_stream = (link == LINK["stream"]) | (link == LINK["unknown"])
        latency = np.minimum(self.typical_latency, self.since_launch)
        latency = np.where(by_launch, self.since_launch, latency)
        gap = np.minimum(self.typical_gap, self.since_free)
        columns: dict[str, Any] = {
            name: getattr(self, name) for name in ("id", "stream", "start", "end")
        }
        return Work(
            **columns,
            latency=np.where(self.known, latency, _NO_LAUNCH),
            gap=np.where(by_stream, self.since_free, gap),
        )


def _queues(stream: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The place of each work on its stream, and what of the work before it there ended last."""
    place, before = np.zeros(stream.size, np.int64), np.full(stream.size, NONE)
    for number in np.unique(stream):
        own = np.flatnonzero(stream == number)
        place[own] = np.arange(own.size)
        before[own[1:]] = own[last_of(end[own])[:-1]]
    return place, before


def last_of(end: Ints) -> Ints:
    """Up to each place, that of the latest end; of equal ones the last."""
    reach = np.maximum.accumulate(end)
    return np.maximum.accumulate(np.where(end == reach, np.arange(end.size), 0))


def _median(values: Ints, otherwise: int) -> int:
    return int(np.median(values)) if values.size else otherwise
