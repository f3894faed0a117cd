"""Finds which device work waited for work of another stream, as recorded or inferred.

The device's own records of waits for events (`enable_cuda_sync_events`) name the stream that is
waited for, and the call that recorded the event. Without them, a call such as cudaStreamWaitEvent
only shows that some stream had to wait. What it waited for is then inferred from work that ended
before.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.graph.calls import HostCallNodes
from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_SEGMENT_KIND,
    CODE_OF_SEGMENT_LINK,
    MAX_REACTION_AFTER_WAIT_NS,
    TIME_BEFORE_RECORDING_NS,
    GraphStreamWaits,
)
from selftime.analysis.graph.device_work_dependencies import LaunchedDeviceWork
from selftime.analysis.slice_filters import runtime_calls_by_name
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

_TIMESTAMP_ERROR_NS: Final = 500
"""How much later than its true end work may seem to end, in ns: a double holds microseconds since
1970 to a quarter of one.
"""


def stream_waits(
    trace: Trace, calls: HostCallNodes, device: LaunchedDeviceWork, streams: pl.DataFrame
) -> tuple[GraphStreamWaits, Flags]:
    """Returns waits of device work for other streams, and flags work that awaited unknown work.

    Args:
        trace: The trace.
        calls: Its calls.
        device: Its work.
        streams: Columns number, device, stream.
    """
    work, needs = _recorded_waiting_and_awaited_work(trace, device, streams)
    told = np.zeros(device.id.size, bool)
    told[work] = True
    made = _is_work_made_to_wait(trace, calls, device) & ~told
    asked = ~told & (made | _may_have_unrecorded_stream_wait(trace, device))
    inferred = _inferred_stream_waits(device, asked, made)
    of_callers = ~told & (inferred == NO_SLICE)
    inferred = np.where(of_callers, _caller_work_of_collectives(device), inferred)
    others = np.flatnonzero(inferred != NO_SLICE)
    every = np.concatenate([work, others])
    order = np.argsort(every, kind="stable")
    recorded = np.arange(every.size) < work.size
    needs = np.concatenate([needs, inferred[others]])
    lag = np.zeros(every.size, np.int64)
    return GraphStreamWaits(every[order], needs[order], lag, recorded[order]), made


def _recorded_waiting_and_awaited_work(
    trace: Trace, device: LaunchedDeviceWork, streams: pl.DataFrame
) -> tuple[Ints, Ints]:
    """Returns indexes of waiting and awaited device work, for the waits that the trace records."""
    numbers = {(row[1], row[2]): int(row[0]) for row in streams.iter_rows()}
    waiting, needed = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    keys = ("device", "stream", "waits_on_stream")
    for places, own in _recorded_waits_between_streams(trace).group_by(*keys, maintain_order=True):
        on, stream, other = places
        waits, works = (numbers.get((on, number)) for number in (stream, other))
        if waits is None or works is None or waits == works:
            continue
        waiting.append(_first_work_launched_after(device, waits, own["asked"].to_numpy(), 0))
        needed.append(_first_work_launched_after(device, works, own["recorded"].to_numpy(), -1))
    work, needs = np.concatenate(waiting), np.concatenate(needed)
    known = (work != NO_SLICE) & (needs != NO_SLICE) & (needs < work)
    work, needs = work[known], needs[known]
    earlier = device.start[needs] < device.start[work]
    pairs = np.unique(np.column_stack([work[earlier], needs[earlier]]), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _first_work_launched_after(
    device: LaunchedDeviceWork, stream: int, instants: Ints, offset: int
) -> Ints:
    """Returns the first device slice launched to a stream at or after each instant (ns), or -1.

    With offset -1 it is the last work launched before. Work of unknown launch time is ignored.
    """
    own = np.flatnonzero((device.stream == stream) & device.known)
    at = np.searchsorted(device.launched[own], instants, side="left") + offset
    inside = (at >= 0) & (at < own.size)
    return np.where(inside, np.append(own, NO_SLICE)[np.where(inside, at, -1)], NO_SLICE)


def _recorded_waits_between_streams(trace: Trace) -> pl.DataFrame:
    """Returns one row for each recorded wait of one stream for another.

    Columns: device, stream, the stream waited for, and the times of wait and event record in ns.
    """
    waits = trace.sync_args.filter(pl.col("waits_on_stream") >= 0)
    numbers = pl.concat([waits["correlation"], waits["recorded_by"]]).unique()
    calls = trace.call_args.select("correlation", call="id")
    calls = calls.filter(pl.col("correlation").is_in(numbers.implode())).drop_nulls()
    calls = calls.unique("correlation", keep="first", maintain_order=True)
    asked = waits.join(calls, on="correlation", how="left", maintain_order="left")
    asked = asked.join(
        calls.rename({"correlation": "recorded_by", "call": "record"}),
        on="recorded_by",
        how="left",
        maintain_order="left",
    )
    begin = trace.slices["start"]
    when = begin.gather(pl.select(pl.lit(asked["call"]).fill_null(asked["id"])).to_series())
    recorded = begin.gather(asked["record"])
    return asked.select("device", "stream", "waits_on_stream").with_columns(
        asked=when, recorded=pl.select(pl.lit(recorded).fill_null(when)).to_series()
    )


def _is_work_made_to_wait(trace: Trace, calls: HostCallNodes, device: LaunchedDeviceWork) -> Flags:
    """Flags device work whose stream was told to wait since the previous launch to the stream."""
    waits = runtime_calls_by_name(trace, names.is_stream_wait)
    found = np.zeros(device.id.size, bool)
    if not waits.height:
        return found
    track = trace.slices["track"].to_numpy()
    threads = trace.tracks["thread"].cast(pl.Int64).to_numpy()
    thread = threads[waits["track"].to_numpy()]
    start = waits["start"].to_numpy()
    by = np.full(device.id.size, NO_SLICE)
    known = np.flatnonzero(device.known)
    by[known] = threads[track[calls.id[device.call[known]]]]
    before = _previous_launch_times(device)
    for number in np.unique(thread).tolist():
        made = np.sort(start[thread == number])
        mine = np.flatnonzero(by == number)
        until = np.searchsorted(made, device.launched[mine], side="left")
        since = np.searchsorted(made, before[mine], side="left")
        found[mine] = until > since
    return found


def _previous_launch_times(device: LaunchedDeviceWork) -> Ints:
    """Returns for each device slice when (ns) the stream's previous slice was launched."""
    found = np.full(device.id.size, TIME_BEFORE_RECORDING_NS, np.int64)
    launched = np.where(device.known, device.launched, TIME_BEFORE_RECORDING_NS)
    order = np.lexsort((launched, device.stream))
    same = device.stream[order][1:] == device.stream[order][:-1]
    found[order[1:][same]] = launched[order[:-1][same]]
    return found


def _may_have_unrecorded_stream_wait(trace: Trace, device: LaunchedDeviceWork) -> Flags:
    """Flags device work that may have waited for another stream although no wait is recorded.

    Where waits are recorded, that is only work within graphs.
    """
    if not trace.sync_args.filter(pl.col("waits_on_stream") >= 0).height:
        return np.ones(device.id.size, bool)
    same = device.call[1:] == device.call[:-1]
    return np.asarray(np.append(same, False) | np.append(False, same))


def _inferred_stream_waits(
    device: LaunchedDeviceWork, is_candidate: Flags, has_unrecorded_wait: Flags
) -> Ints:
    """Returns for each device slice the other stream's slice it seems to have awaited, or -1.

    That work ended after all other known dependencies of the waiting work. If the stream may have
    been made to wait, it may have ended at any time; else it ended just before the waiting work
    began, and nothing else explains so long a wait.
    """
    when, _, link = device.last_of_launch_and_previous_work()
    usual = np.where(
        link == CODE_OF_SEGMENT_LINK["launch"], device.typical_latency, device.typical_gap
    )
    late = device.start - when > np.maximum(MAX_REACTION_AFTER_WAIT_NS, 2 * usual)
    found = np.full(device.id.size, NO_SLICE)
    at = np.flatnonzero(is_candidate & (late | has_unrecorded_wait))
    by = device.start[at] + _TIMESTAMP_ERROR_NS
    last = device.last_work_done(at, by, device.end > device.start)
    at, last = at[last != NO_SLICE], last[last != NO_SLICE]
    end = device.end[last]
    fits = (end > when[at]) & (
        has_unrecorded_wait[at] | (device.start[at] - end <= MAX_REACTION_AFTER_WAIT_NS)
    )
    fits &= (device.stream[last] != device.stream[at]) & (device.start[last] < device.start[at])
    found[at[fits]] = last[fits]
    return found


def _caller_work_of_collectives(device: LaunchedDeviceWork) -> Ints:
    """Returns for each collective the work launched before it that ended by its begin, or -1.

    A communication library makes its stream wait for that of the caller.
    """
    number = np.arange(device.id.size)
    communicates = device.kind == CODE_OF_SEGMENT_KIND["communication"]
    last = np.append(NO_SLICE, np.maximum.accumulate(np.where(communicates, NO_SLICE, number)))[:-1]
    fits = communicates & device.known & (last != NO_SLICE)
    fits[fits] &= device.known[last[fits]] & (device.end[last[fits]] <= device.start[fits])
    fits[fits] &= device.stream[last[fits]] != device.stream[fits]
    return np.where(fits, last, NO_SLICE)
