"""What calls waited for: work of the device, or room in its queue."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.graph.calls import CallNodes
from selftime.analysis.graph.device_edges import Device, last_of
from selftime.analysis.graph.graph import ALL
from selftime.analysis.graph.segment_kinds import SLACK
from selftime.analysis.idle.host_waits import host_waits
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE
from selftime.trace import Trace

_DEPTH: Final = 1_022
"""Works that a stream of CUDA holds; from there on launches block (torch PR 79805, and traces)."""
_NEARLY_FULL: Final = 900
"""A trace whose queues reach this tells their depth."""
_QUICK: Final = 5_000
"""Host time of a wait whose condition holds, in ns, where a trace has none that did not wait."""


class HostWaits:
    """What the calls of a trace waited for.

    Args:
        trace: The trace.
        calls: Its calls.
        device: Its work.
        last: How much work was launched until each call, its own with it, shape (n,).
        streams: Columns number, device, stream.
    """

    def __init__(
        self, trace: Trace, calls: CallNodes, device: Device, last: Ints, streams: pl.DataFrame
    ) -> None:
        self.trace, self.calls, self.device, self.last = trace, calls, device, last
        self.streams = streams
        self.place = np.full(trace.slices.height + 1, NONE)
        known = np.flatnonzero(calls.id != NONE)
        self.place[calls.id[known]] = known

    def columns(self) -> dict[str, Any]:
        """For each call: own, wait, waits_for, waits_stream, after, recorded, held_by."""
        calls, device = self.calls, self.device
        start, end = calls.start, calls.end
        asked = self._asked()
        at, kind = asked["call"].to_numpy(), asked["kind"].to_numpy()
        wait = calls.id.copy()
        wait[at] = asked["id"].to_numpy()
        for_work = self._room()
        found = asked["found"].to_numpy()
        for_work[at] = found
        for_stream = np.full(start.size, NONE)
        of_stream = (kind == "stream") & (found != NONE)
        for_stream[at[of_stream]] = device.stream[found[of_stream]]
        for_stream[at[(kind == "device") & (found != NONE)]] = ALL
        for_work[for_stream != NONE] = NONE
        condition, by = self._conditions(for_work, for_stream)
        wrong = (for_stream != NONE) & (condition > end + SLACK)  # more ran on than it waited for
        for_work[at] = np.where(wrong[at], found, for_work[at])
        for_stream[wrong] = NONE
        condition, by = self._conditions(for_work, for_stream)
        held = (by != NONE) & (condition > start) & (condition <= end + SLACK)
        held[held] &= device.start[by[held]] < end[held]
        told = (kind != "stream") | asked["stream"].is_not_null().to_numpy()
        recorded = np.zeros(start.size, bool)
        recorded[at] = told & (for_work[at] != NONE) | (for_stream[at] != NONE) & told
        since = end - condition
        return {
            "own": np.where(held, np.minimum(end - start, self._typical(held)), end - start),
            "wait": wait,
            "waits_for": for_work,
            "waits_stream": for_stream,
            "after": np.where(held, since, np.minimum(0, since)),
            "recorded": recorded,
            "held_by": np.where(held, by, NONE),
        }

    def _asked(self) -> pl.DataFrame:
        """Calls that wait for the device: id of the wait, call, kind, stream, found.

        Found is the last work, of the stream that is named if one is, that was done when the wait
        was over. A copy and the call after it that waits for its stream are one wait: held was the
        call that that work ended in.
        """
        found = host_waits(self.trace).with_columns(stream=pl.col("stream").cast(pl.Int64))
        call = self.place[found["id"].to_numpy()]
        found, call = found.filter(pl.Series(call != NONE)), call[call != NONE]
        last = self._last_calls(call, found["end"].to_numpy())
        work = self._found(found, last)
        ends = np.append(self.device.end, 0)[work]
        later = (ends > self.calls.end[call]) | (work >= self.last[call])
        call = np.where((work != NONE) & later, last, call)
        table = found.select(
            pl.col("id").cast(pl.Int64),
            "kind",
            "stream",
            call=pl.Series(call),
            found=pl.Series(work),
        )
        return table.unique("call", keep="first").sort("call")

    def _last_calls(self, call: Ints, end: Ints) -> Ints:
        """Of the waits of some calls those that they end with."""
        calls, last = self.calls, call.copy()
        for number in np.unique(calls.thread[call]).tolist():
            own = np.flatnonzero((calls.thread == number) & (calls.id != NONE))
            asking = np.flatnonzero(calls.thread[call] == number)
            latest = own[np.searchsorted(calls.start[own], end[asking], side="left") - 1]
            is_end = calls.end[latest] == end[asking]
            last[asking[is_end]] = latest[is_end]
        return last

    def _found(self, asked: pl.DataFrame, call: Ints) -> Ints:
        """The last work, of the stream that is named if one is, that was done by each end."""
        found = np.full(call.size, NONE)
        limit, when = self.last[call], asked["end"].to_numpy() + SLACK
        named = asked["stream"]
        for stream in named.unique().to_list():
            own, among = named.is_null().arg_true().to_numpy(), None
            if stream is not None:
                own = (named == stream).arg_true().to_numpy()
                numbers = self.streams.filter(pl.col("stream") == stream)["number"].to_numpy()
                among = np.isin(self.device.stream, numbers)
            found[own] = self.device.last_before(limit[own], when[own], among)
        return found

    def _room(self) -> Ints:
        """For each call that launches: the work that must be done for the queue to have room.

        It is so many places before its own as a queue holds. Where a call returned long after
        that was done, its queue held less: the last work that was done when it returned.
        """
        device, most = self.device, self.device.most_held()
        depth = most if most >= _NEARLY_FULL else _DEPTH
        found = np.full(self.last.size, NONE)
        known = np.flatnonzero(device.known)
        launching, at = np.unique(device.call[known], return_index=True)
        first = known[at]
        for number in np.unique(device.stream[first]).tolist():
            queue = np.flatnonzero(device.stream == number)
            own = np.flatnonzero((device.stream[first] == number) & (device.place[first] >= depth))
            call, room = launching[own], queue[device.place[first[own]] - depth]
            start, end, free = self.calls.start[call], self.calls.end[call], device.end[room]
            late = np.flatnonzero((free > start) & (end - free > SLACK))
            on_stream = device.stream == number
            room[late] = device.last_before(first[own[late]], end[late], on_stream)
            found[call] = room
        return found

    def _conditions(self, for_work: Ints, for_stream: Ints) -> tuple[Ints, Ints]:
        """When the condition of each call was true in the recording, and by which work, or NONE."""
        device = self.device
        by = for_work.copy()
        for stream in np.unique(for_stream[for_stream != NONE]):
            asking = np.flatnonzero(for_stream == stream)
            every = np.arange(device.end.size)
            own = every if stream == ALL else np.flatnonzero(device.stream == stream)
            place = np.searchsorted(own, self.last[asking], side="left") - 1
            latest = own[last_of(device.end[own])]
            by[asking] = np.where(place >= 0, latest[np.maximum(place, 0)], NONE)
        return np.append(device.end, 0)[by], by

    def _typical(self, held: Flags) -> Ints:
        """The median host time of calls of the same name that nothing held, by call, in ns."""
        calls = self.calls
        known = calls.id != NONE
        slices = pl.Series(np.where(known, calls.id, 0), dtype=pl.UInt32)
        free = pl.Series(calls.end - calls.start).set(pl.Series(held | ~known), None)
        name = self.trace.slices["name"].gather(slices).to_physical()
        typical = pl.DataFrame({"name": name, "free": free}).select(
            pl.col("free").median().over("name")
        )
        return typical.to_series().fill_null(_QUICK).cast(pl.Int64).to_numpy()
