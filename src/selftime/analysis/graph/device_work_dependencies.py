"""Finds what device work waited for: its launch, its stream, or work of another stream."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_SEGMENT_LINK,
    MAX_REACTION_AFTER_WAIT_NS,
    TIME_BEFORE_RECORDING_NS,
    GraphDeviceWork,
    GraphStreamWaits,
    LastDependenciesOfWork,
)
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE

_DEFAULT_LAUNCH_LATENCY_NS: Final = 6_000
"""Time in ns from a launch to the begin of its work on an idle stream, for traces that do not show
it.
"""
_DEFAULT_GAP_BETWEEN_KERNELS_NS: Final = 1_000
"""Time in ns between two kernels of a busy NVIDIA stream, for traces that do not show it."""
_LATENCY_OF_UNKNOWN_LAUNCH_NS: Final = -(1 << 60)
"""Launch latency in ns of work whose launch is unknown: so low that it never delays the work."""
_MAX_WORK_CANDIDATES_PER_INSTANT: Final = 4
"""How many of the device slices that ended last before an instant are tried, latest first."""


class LaunchedDeviceWork:
    """The device work of a trace in launch order, with the previous work on each stream.

    Args:
        work_rows: One row for each work: id, start, end, kind (its code), number (of the stream),
            call (that launched it, or the latest possible one), known (whether that call
            launched it).
        call_starts: When each call began, in ns, shape (n,).
        program_begin: When the first call began, in ns.
    """

    def __init__(self, work_rows: pl.DataFrame, call_starts: Ints, program_begin: int) -> None:
        self.id = work_rows["id"].cast(pl.Int64).to_numpy()
        self.kind = work_rows["kind"].to_numpy()
        self.stream = work_rows["number"].to_numpy()
        self.start, self.end = work_rows["start"].to_numpy(), work_rows["end"].to_numpy()
        self.known = work_rows["known"].to_numpy()
        self.call = work_rows["call"].to_numpy()
        self.launched = (
            call_starts[self.call]
            if call_starts.size
            else np.full(self.id.size, program_begin, np.int64)
        )
        self.place, self.before = _positions_on_stream(self.stream, self.end)
        ends = np.append(self.end, program_begin)
        self.free = np.maximum(ends[self.before], program_begin)
        self.since_launch = self.start - self.launched
        self.since_free = self.start - self.free
        self.by_end = np.argsort(self.end, kind="stable")
        idle = self.known & (self.free <= self.launched) & (self.since_launch >= 0)
        queued = (
            self.known
            & (self.free > self.launched + MAX_REACTION_AFTER_WAIT_NS)
            & (self.since_free >= 0)
        )
        may_wait = self._may_wait_for_other_stream()
        plain = idle & ~may_wait
        latencies = self.since_launch[plain if plain.any() else idle]
        self.typical_latency = _median_or_default(latencies, _DEFAULT_LAUNCH_LATENCY_NS)
        # Where most work waits for what no record names, the median is such a wait.
        self.typical_gap = min(
            _median_or_default(
                self.since_free[queued & ~may_wait], _DEFAULT_GAP_BETWEEN_KERNELS_NS
            ),
            MAX_REACTION_AFTER_WAIT_NS,
        )

    def last_work_done(
        self, launch_limit: Ints, instants: Ints, candidates: Flags | None = None
    ) -> Ints:
        """Returns for each instant which of the first `launch_limit` slices ended last before it.

        Args:
            launch_limit: The number of works launched before, shape (k,).
            instants: The instants, in ns.
            candidates: Flags of the works to consider, shape (m,); all by default.
        """
        order = self.by_end if candidates is None else self.by_end[candidates[self.by_end]]
        at = np.searchsorted(self.end[order], instants, side="right") - 1
        found = np.full(instants.size, NO_SLICE, np.int64)
        for _ in range(_MAX_WORK_CANDIDATES_PER_INSTANT if order.size else 0):
            candidate = order[np.maximum(at, 0)]
            open_ = (found == NO_SLICE) & (at >= 0)
            found = np.where(open_ & (candidate < launch_limit), candidate, found)
            at = at - 1
        return found

    def _may_wait_for_other_stream(self) -> Flags:
        """Flags work that may have waited for work of another stream.

        Work of another stream ended just before its begin, and after its launch. So its latency may
        not be that of a launch.
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
            & (self.start - done <= MAX_REACTION_AFTER_WAIT_NS)
        )

    def longest_stream_queue(self) -> int:
        """Returns the largest number of kernels and copies queued on one stream at any launch."""
        most = 0
        for stream in np.unique(self.stream):
            own = np.flatnonzero((self.stream == stream) & self.known)
            done = np.searchsorted(np.sort(self.end[own]), self.launched[own], side="right")
            most = max(most, int((np.arange(own.size) - done).max(initial=0)))
        return most

    def last_of_launch_and_previous_work(self) -> tuple[Ints, Ints, Ints]:
        """Returns what each device slice waited for last: its launch, or its stream's earlier work.

        Three arrays: that time in ns; the previous work of the stream, or -1; and the link.
        """
        start = self.start
        known = self.before != NO_SLICE
        known[known] = start[self.before[known]] <= start[known]
        before = np.where(known, self.before, NO_SLICE)
        free = np.where(
            known, np.minimum(np.append(self.end, 0)[before], start), TIME_BEFORE_RECORDING_NS
        )
        launched = np.where(self.known, np.minimum(self.launched, start), TIME_BEFORE_RECORDING_NS)
        by_launch = self.known & (launched >= free)
        link = np.where(
            before == NO_SLICE, CODE_OF_SEGMENT_LINK["unknown"], CODE_OF_SEGMENT_LINK["stream"]
        )
        return (
            np.where(by_launch, launched, free),
            np.where(by_launch, NO_SLICE, before),
            np.where(by_launch, CODE_OF_SEGMENT_LINK["launch"], link),
        )

    def work_with_dependencies(
        self, stream_waits: GraphStreamWaits, has_unrecorded_wait: Flags
    ) -> tuple[GraphDeviceWork, GraphStreamWaits, LastDependenciesOfWork]:
        """Returns device work, its waits for other streams, and what each slice waited for last.

        Args:
            stream_waits: The waits for other streams; their lags are ignored.
            has_unrecorded_wait: Flags work whose stream waited for something that no record
                names.
        """
        since = self.start[stream_waits.work] - self.end[stream_waits.awaited_work]
        when, source, link = self.last_of_launch_and_previous_work()
        reached = np.minimum(self.end[stream_waits.awaited_work], self.start[stream_waits.work])
        order = np.argsort(reached, kind="stable")  # the latest end is assigned last
        latest = np.full(self.id.size, NO_SLICE)
        latest[stream_waits.work[order]] = order
        last = np.append(reached, TIME_BEFORE_RECORDING_NS)[latest]
        waited = np.flatnonzero((last > when) & (latest != NO_SLICE))
        binding = latest[waited]
        source[waited] = stream_waits.awaited_work[binding]
        link[waited] = np.where(
            stream_waits.is_recorded[binding],
            CODE_OF_SEGMENT_LINK["event"],
            CODE_OF_SEGMENT_LINK["inferred"],
        )
        lag = np.minimum(self.typical_gap, since)
        lag[binding] = since[binding]
        work = self._work_with_latencies_and_gaps(link)
        waits = GraphStreamWaits(
            stream_waits.work, stream_waits.awaited_work, lag, stream_waits.is_recorded
        )
        call = np.where(self.known, self.call, NO_SLICE)
        return (
            work,
            waits,
            LastDependenciesOfWork(link, source, call, self.kind, has_unrecorded_wait),
        )

    def _work_with_latencies_and_gaps(self, link: Ints) -> GraphDeviceWork:
        """Returns device work with launch latencies and stream gaps in ns, by last dependency."""
        by_launch = link == CODE_OF_SEGMENT_LINK["launch"]
        by_stream = (link == CODE_OF_SEGMENT_LINK["stream"]) | (
            link == CODE_OF_SEGMENT_LINK["unknown"]
        )
        latency = np.minimum(self.typical_latency, self.since_launch)
        latency = np.where(by_launch, self.since_launch, latency)
        gap = np.minimum(self.typical_gap, self.since_free)
        columns: dict[str, Any] = {
            name: getattr(self, name) for name in ("id", "stream", "start", "end")
        }
        return GraphDeviceWork(
            **columns,
            launch_latency=np.where(self.known, latency, _LATENCY_OF_UNKNOWN_LAUNCH_NS),
            gap_after_previous_work=np.where(by_stream, self.since_free, gap),
        )


def _positions_on_stream(stream: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Returns each slice's position on its stream, and the earlier slice there that ends last."""
    place, before = np.zeros(stream.size, np.int64), np.full(stream.size, NO_SLICE)
    for number in np.unique(stream):
        own = np.flatnonzero(stream == number)
        place[own] = np.arange(own.size)
        before[own[1:]] = own[index_of_latest_end(end[own])[:-1]]
    return place, before


def index_of_latest_end(ends: Ints) -> Ints:
    """Returns for each i the index of the largest of `ends[: i + 1]`; of equal ends the last."""
    reach = np.maximum.accumulate(ends)
    return np.maximum.accumulate(np.where(ends == reach, np.arange(ends.size), 0))


def _median_or_default(values: Ints, default: int) -> int:
    return int(np.median(values)) if values.size else default
