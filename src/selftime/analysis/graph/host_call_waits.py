"""Finds what host calls waited for: device work, or room in the queue of a stream."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.graph.calls import HostCallNodes
from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_ALL_STREAMS,
    MAX_REACTION_AFTER_WAIT_NS,
)
from selftime.analysis.graph.device_work_dependencies import LaunchedDeviceWork, index_of_latest_end
from selftime.analysis.idle.host_waits import host_waits
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

_CUDA_STREAM_QUEUE_CAPACITY: Final = 1_022
"""Number of kernels and copies that a CUDA stream can queue; after that, launches block (torch PR
79805, and traces).
"""
_MIN_LENGTH_OF_OBSERVED_FULL_QUEUE: Final = 900
"""Smallest length of a trace's longest launch queue at which the queue counts as having been full.
"""
_DEFAULT_CALL_DURATION_NS: Final = 5_000
"""Host time in ns of a waiting call that need not wait, for traces without such a call."""


class HostCallWaits:
    """Finds what each host call waited for: device work, a stream, or room in a stream's queue.

    Args:
        trace: The trace.
        calls: Its calls.
        device: Its work.
        launched_count: The number of works launched up to and including each call, shape (n,).
        streams: Columns number, device, stream.
    """

    def __init__(
        self,
        trace: Trace,
        calls: HostCallNodes,
        device: LaunchedDeviceWork,
        launched_count: Ints,
        streams: pl.DataFrame,
    ) -> None:
        self.trace, self.calls, self.device, self.launched_count = (
            trace,
            calls,
            device,
            launched_count,
        )
        self.streams = streams
        self.place = np.full(trace.slices.height + 1, NO_SLICE)
        known = np.flatnonzero(calls.id != NO_SLICE)
        self.place[calls.id[known]] = known

    def wait_columns_of_calls(self) -> dict[str, Any]:
        """Returns the columns of `GraphCalls` that describe what each call waited for, by name."""
        calls, device = self.calls, self.device
        start, end = calls.start, calls.end
        asked = self._calls_waiting_for_device()
        at, kind = asked["call"].to_numpy(), asked["kind"].to_numpy()
        wait = calls.id.copy()
        wait[at] = asked["id"].to_numpy()
        for_work = self._work_freeing_stream_queue()
        found = asked["found"].to_numpy()
        for_work[at] = found
        for_stream = np.full(start.size, NO_SLICE)
        of_stream = (kind == "stream") & (found != NO_SLICE)
        for_stream[at[of_stream]] = device.stream[found[of_stream]]
        for_stream[at[(kind == "device") & (found != NO_SLICE)]] = CODE_OF_ALL_STREAMS
        for_work[for_stream != NO_SLICE] = NO_SLICE
        condition, by = self._end_and_index_of_awaited_work(for_work, for_stream)
        wrong = (for_stream != NO_SLICE) & (
            condition > end + MAX_REACTION_AFTER_WAIT_NS
        )  # the stream ran longer than the call waited
        for_work[at] = np.where(wrong[at], found, for_work[at])
        for_stream[wrong] = NO_SLICE
        condition, by = self._end_and_index_of_awaited_work(for_work, for_stream)
        held = (
            (by != NO_SLICE) & (condition > start) & (condition <= end + MAX_REACTION_AFTER_WAIT_NS)
        )
        held[held] &= device.start[by[held]] < end[held]
        told = (kind != "stream") | asked["stream"].is_not_null().to_numpy()
        recorded = np.zeros(start.size, bool)
        recorded[at] = told & (for_work[at] != NO_SLICE) | (for_stream[at] != NO_SLICE) & told
        since = end - condition
        return {
            "own_time": np.where(
                held, np.minimum(end - start, self._typical_call_durations(held)), end - start
            ),
            "wait_slice": wait,
            "awaited_work": for_work,
            "awaited_stream": for_stream,
            "delay_after_condition": np.where(held, since, np.minimum(0, since)),
            "is_condition_recorded": recorded,
            "released_by": np.where(held, by, NO_SLICE),
        }

    def _calls_waiting_for_device(self) -> pl.DataFrame:
        """Returns one row for each call that waits for the device, with the work it waited for.

        `found` is the last work that was done when the wait was over, of the named stream if one is
        named. A copy and the following call that waits for its stream are one wait: the waiting
        call is the one in which that work ended.
        """
        found = host_waits(self.trace).with_columns(stream=pl.col("stream").cast(pl.Int64))
        call = self.place[found["id"].to_numpy()]
        found, call = found.filter(pl.Series(call != NO_SLICE)), call[call != NO_SLICE]
        last = self._calls_ending_waits(call, found["end"].to_numpy())
        work = self._last_work_done_by_wait_ends(found, last)
        ends = np.append(self.device.end, 0)[work]
        later = (ends > self.calls.end[call]) | (work >= self.launched_count[call])
        call = np.where((work != NO_SLICE) & later, last, call)
        table = found.select(
            pl.col("id").cast(pl.Int64),
            "kind",
            "stream",
            call=pl.Series(call),
            found=pl.Series(work),
        )
        return table.unique("call", keep="first").sort("call")

    def _calls_ending_waits(self, call: Ints, wait_end: Ints) -> Ints:
        """Returns for each waiting call the call on its thread that ended when the wait ended."""
        calls, last = self.calls, call.copy()
        for number in np.unique(calls.thread[call]).tolist():
            own = np.flatnonzero((calls.thread == number) & (calls.id != NO_SLICE))
            asking = np.flatnonzero(calls.thread[call] == number)
            latest = own[np.searchsorted(calls.start[own], wait_end[asking], side="left") - 1]
            is_end = calls.end[latest] == wait_end[asking]
            last[asking[is_end]] = latest[is_end]
        return last

    def _last_work_done_by_wait_ends(self, waits: pl.DataFrame, call: Ints) -> Ints:
        """Returns for each wait the last work done by its end, on the wait's stream if known."""
        found = np.full(call.size, NO_SLICE)
        limit, when = (
            self.launched_count[call],
            waits["end"].to_numpy() + MAX_REACTION_AFTER_WAIT_NS,
        )
        named = waits["stream"]
        for stream in named.unique().to_list():
            own, among = named.is_null().arg_true().to_numpy(), None
            if stream is not None:
                own = (named == stream).arg_true().to_numpy()
                numbers = self.streams.filter(pl.col("stream") == stream)["number"].to_numpy()
                among = np.isin(self.device.stream, numbers)
            found[own] = self.device.last_work_done(limit[own], when[own], among)
        return found

    def _work_freeing_stream_queue(self) -> Ints:
        """Returns for each launch the device work that must end before its stream's queue has room.

        It is as many positions before its own work as a queue holds. Where a call returned long
        after that work was done, its queue held less: then it is the last work done when the call
        returned.
        """
        device, most = self.device, self.device.longest_stream_queue()
        depth = most if most >= _MIN_LENGTH_OF_OBSERVED_FULL_QUEUE else _CUDA_STREAM_QUEUE_CAPACITY
        found = np.full(self.launched_count.size, NO_SLICE)
        known = np.flatnonzero(device.known)
        launching, at = np.unique(device.call[known], return_index=True)
        first = known[at]
        for number in np.unique(device.stream[first]).tolist():
            queue = np.flatnonzero(device.stream == number)
            own = np.flatnonzero((device.stream[first] == number) & (device.place[first] >= depth))
            call, room = launching[own], queue[device.place[first[own]] - depth]
            start, end, free = self.calls.start[call], self.calls.end[call], device.end[room]
            late = np.flatnonzero((free > start) & (end - free > MAX_REACTION_AFTER_WAIT_NS))
            on_stream = device.stream == number
            room[late] = device.last_work_done(first[own[late]], end[late], on_stream)
            found[call] = room
        return found

    def _end_and_index_of_awaited_work(
        self, awaited_work: Ints, awaited_stream: Ints
    ) -> tuple[Ints, Ints]:
        """Returns when (ns) each call's awaited work ended, and its index; -1 if none is awaited.

        The time is in ns; the work is -1 for calls without a condition.
        """
        device = self.device
        by = awaited_work.copy()
        for stream in np.unique(awaited_stream[awaited_stream != NO_SLICE]):
            asking = np.flatnonzero(awaited_stream == stream)
            every = np.arange(device.end.size)
            own = (
                every if stream == CODE_OF_ALL_STREAMS else np.flatnonzero(device.stream == stream)
            )
            place = np.searchsorted(own, self.launched_count[asking], side="left") - 1
            latest = own[index_of_latest_end(device.end[own])]
            by[asking] = np.where(place >= 0, latest[np.maximum(place, 0)], NO_SLICE)
        return np.append(device.end, 0)[by], by

    def _typical_call_durations(self, has_waited: Flags) -> Ints:
        """Returns each call's median duration (ns) over calls of its name that did not wait."""
        calls = self.calls
        known = calls.id != NO_SLICE
        slices = pl.Series(np.where(known, calls.id, 0), dtype=pl.UInt32)
        free = pl.Series(calls.end - calls.start).set(pl.Series(has_waited | ~known), None)
        name = self.trace.slices["name"].gather(slices).to_physical()
        typical = pl.DataFrame({"name": name, "free": free}).select(
            pl.col("free").median().over("name")
        )
        return typical.to_series().fill_null(_DEFAULT_CALL_DURATION_NS).cast(pl.Int64).to_numpy()
