"""What work on a device waited for: its launch, its stream, or work of another stream."""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.advice.replay.program import NOTHING, Work
from selftime.arrays import Ints

SLACK: Final = 20_000
"""What waits for an end goes on within this of it, in ns."""
_LATENCY: Final = 6_000
_GAP: Final = 1_000
"""Typical times, in ns, where a trace has no launch to tell them by: those of NVIDIA's GPUs."""
_DEPTH: Final = 1_022
"""Works that a stream of CUDA holds; from there on launches block (torch PR 79805, and traces)."""
_NEARLY_FULL: Final = 900
"""A trace whose queues reach this tells their depth."""
_NEVER: Final = -(1 << 60)
_LOOK_BACK: Final = 4
"""So many ends before a begin are looked at for one of another stream."""


class Device:
    """The work of a trace in the order of its launches, and what held each back.

    Args:
        placed: One row for each work: id, start, end, number (of the stream), entry, known (whether
            its launch is).
        called: When each entry began, in ns, shape (n,).
        begin: When the program began.
    """

    def __init__(self, placed: pl.DataFrame, called: Ints, begin: int) -> None:
        self.id = placed["id"].cast(pl.Int64).to_numpy()
        self.stream = placed["number"].to_numpy()
        self.start, self.end = placed["start"].to_numpy(), placed["end"].to_numpy()
        self.known = placed["known"].to_numpy()
        at = placed["entry"].to_numpy()
        self.launched = called[at] if called.size else np.full(at.size, begin, np.int64)
        self.place, self.free = _queues(self.stream, self.end, begin)
        self.since_launch = self.start - self.launched
        self.since_free = self.start - self.free
        idle = self.known & (self.free <= self.launched) & (self.since_launch >= 0)
        queued = self.known & (self.free > self.launched + SLACK) & (self.since_free >= 0)
        plain = idle & ~self._may_be_held()
        latencies = self.since_launch[plain if plain.any() else idle]
        self.typical_latency = _median(latencies, _LATENCY)
        self.typical_gap = _median(self.since_free[queued], _GAP)
        self.depth = self._depth()

    def work(self) -> Work:
        """Every work with what it waited for; the last of that holds the remainder."""
        latency = np.minimum(self.typical_latency, self.since_launch)
        gap = np.minimum(self.typical_gap, self.since_free)
        idle = self.free <= self.launched
        needs = self._needs(idle)
        alone = needs == NOTHING
        latency = np.where(alone & idle, self.since_launch, latency)
        gap = np.where(alone & ~idle, self.since_free, gap)
        latency = np.where(self.known, latency, _NEVER)
        gap = np.where(self.known, gap, self.since_free)
        since = self.start - self.end[np.maximum(needs, 0)] if needs.size else needs
        return Work(
            id=self.id,
            stream=self.stream,
            start=self.start,
            end=self.end,
            latency=latency,
            gap=gap,
            needs=needs,
            needs_gap=np.where(alone, 0, since),
        )

    def last_before(self, limit: Ints, when: Ints) -> Ints:
        """Of the work launched before each limit, the last that was done by each instant."""
        order = np.argsort(self.end, kind="stable")
        at = np.searchsorted(self.end[order], when, side="right") - 1
        found = np.full(when.size, NOTHING, np.int64)
        for _ in range(_LOOK_BACK):
            open_ = (found == NOTHING) & (at >= 0)
            candidate = order[np.maximum(at, 0)] if order.size else found
            found = np.where(open_ & (candidate < limit), candidate, found)
            at -= 1
        return found

    def _may_be_held(self) -> NDArray[np.bool_]:
        """Whether work of another stream ended between a work's launch and its begin, just before.

        Such work may have waited for that: its latency is not that of a launch.
        """
        if not self.id.size:
            return np.zeros(0, bool)
        order = np.argsort(self.end, kind="stable")
        at = np.searchsorted(self.end[order], self.start, side="right") - 1
        last = order[np.maximum(at, 0)]
        done = self.end[last]
        return np.asarray(
            (at >= 0)
            & (self.stream[last] != self.stream)
            & (done > self.launched)
            & (self.start - done <= SLACK)
        )

    def _needs(self, idle: NDArray[np.bool_]) -> Ints:
        """Work of another stream that ended just before work that nothing else held so long."""
        held = np.where(idle, self.since_launch - self.typical_latency, 0)
        held = np.where(~idle, self.since_free - self.typical_gap, held)
        late = self.known & (held > SLACK)
        found = np.full(self.start.size, NOTHING, np.int64)
        order = np.argsort(self.end, kind="stable")
        asked = np.flatnonzero(late)
        at = np.searchsorted(self.end[order], self.start[asked], side="right") - 1
        for _ in range(_LOOK_BACK):
            candidate = order[np.maximum(at, 0)] if order.size else at
            fits = (
                (at >= 0)
                & (found[asked] == NOTHING)
                & (candidate < asked)
                & (self.stream[candidate] != self.stream[asked])
                & (self.start[asked] - self.end[candidate] <= SLACK)
            )
            found[asked[fits]] = candidate[fits]
            at -= 1
        return found

    def _depth(self) -> int:
        """The most work that a stream held at a launch, if launches came near to blocking."""
        most = 0
        for stream in np.unique(self.stream):
            own = np.flatnonzero((self.stream == stream) & self.known)
            done = np.searchsorted(np.sort(self.end[own]), self.launched[own], side="right")
            most = max(most, int((np.arange(own.size) - done).max(initial=0)))
        return most if most >= _NEARLY_FULL else _DEPTH


def _queues(stream: Ints, end: Ints, begin: int) -> tuple[Ints, Ints]:
    """The place of each work on its stream, and when the stream was free for it."""
    place, free = np.zeros(stream.size, np.int64), np.full(stream.size, begin, np.int64)
    for number in np.unique(stream):
        own = np.flatnonzero(stream == number)
        place[own] = np.arange(own.size)
        free[own[1:]] = np.maximum(np.maximum.accumulate(end[own])[:-1], begin)
    return place, free


def _median(values: Ints, otherwise: int) -> int:
    return int(np.median(values)) if values.size else otherwise
