"""What made work of one stream wait for work of another.

The device's own records of waits for events (`enable_cuda_sync_events`) tell the stream that is
waited for, and the call that recorded the event. Without them a call such as cudaStreamWaitEvent
shows that some stream was made to wait, and not for what: that is inferred from what ended before.
"""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.graph.calls import CallNodes
from selftime.analysis.graph.device_edges import Device
from selftime.analysis.graph.graph import StreamWaits
from selftime.analysis.graph.segment_kinds import CODE, LINK, NEVER, SLACK
from selftime.analysis.slice_filters import runtime_calls_by_name
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE
from selftime.trace import Trace


def stream_waits(
    trace: Trace, calls: CallNodes, device: Device, streams: pl.DataFrame
) -> tuple[StreamWaits, Flags]:
    """The waits of work for other streams, without lags; and which are for nothing that is told.

    Args:
        trace: The trace.
        calls: Its calls.
        device: Its work.
        streams: Columns number, device, stream.
    """
    work, needs = _recorded(trace, device, streams)
    told = np.zeros(device.id.size, bool)
    told[work] = True
    made = _is_made_to_wait(trace, calls, device) & ~told
    asked = ~told & (made | _is_inferable(trace, device))
    inferred = _inferred(device, asked, made)
    of_callers = ~told & (inferred == NONE)
    inferred = np.where(of_callers, _callers_work(device), inferred)
    others = np.flatnonzero(inferred != NONE)
    every = np.concatenate([work, others])
    order = np.argsort(every, kind="stable")
    recorded = np.arange(every.size) < work.size
    needs = np.concatenate([needs, inferred[others]])
    lag = np.zeros(every.size, np.int64)
    return StreamWaits(every[order], needs[order], lag, recorded[order]), made


def _recorded(trace: Trace, device: Device, streams: pl.DataFrame) -> tuple[Ints, Ints]:
    """What waits and what it waits for, as the trace tells it."""
    numbers = {(row[1], row[2]): int(row[0]) for row in streams.iter_rows()}
    waiting, needed = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    keys = ("device", "stream", "waits_on_stream")
    for places, own in _waits(trace).group_by(*keys, maintain_order=True):
        on, stream, other = places
        waits, works = (numbers.get((on, number)) for number in (stream, other))
        if waits is None or works is None or waits == works:
            continue
        waiting.append(_launched(device, waits, own["asked"].to_numpy(), 0))
        needed.append(_launched(device, works, own["recorded"].to_numpy(), -1))
    work, needs = np.concatenate(waiting), np.concatenate(needed)
    known = (work != NONE) & (needs != NONE) & (needs < work)
    work, needs = work[known], needs[known]
    earlier = device.start[needs] < device.start[work]
    pairs = np.unique(np.column_stack([work[earlier], needs[earlier]]), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _launched(device: Device, stream: int, when: Ints, place: int) -> Ints:
    """Of a stream the first work launched from each instant on, or with place -1 the last before.

    Work of which it is not known when it was launched is neither.
    """
    own = np.flatnonzero((device.stream == stream) & device.known)
    at = np.searchsorted(device.launched[own], when, side="left") + place
    inside = (at >= 0) & (at < own.size)
    return np.where(inside, np.append(own, NONE)[np.where(inside, at, -1)], NONE)


def _waits(trace: Trace) -> pl.DataFrame:
    """Recorded waits: device, stream, the one waited for, when asked for, when recorded (ns)."""
    calls = trace.call_args.select("correlation", call="id").drop_nulls()
    calls = calls.unique("correlation", keep="first", maintain_order=True)
    asked = trace.sync_args.filter(pl.col("waits_on_stream") >= 0).join(
        calls, on="correlation", how="left", maintain_order="left"
    )
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


def _is_made_to_wait(trace: Trace, calls: CallNodes, device: Device) -> Flags:
    """Whether a call made a stream wait since the last launch to a work's stream by its thread."""
    waits = runtime_calls_by_name(trace, names.is_stream_wait)
    found = np.zeros(device.id.size, bool)
    if not waits.height:
        return found
    track = trace.slices["track"].to_numpy()
    threads = trace.tracks["thread"].cast(pl.Int64).to_numpy()
    thread = threads[waits["track"].to_numpy()]
    start = waits["start"].to_numpy()
    by = np.full(device.id.size, NONE)
    known = np.flatnonzero(device.known)
    by[known] = threads[track[calls.id[device.call[known]]]]
    before = _launched_before(device)
    for number in np.unique(thread).tolist():
        made = np.sort(start[thread == number])
        mine = np.flatnonzero(by == number)
        until = np.searchsorted(made, device.launched[mine], side="left")
        since = np.searchsorted(made, before[mine], side="left")
        found[mine] = until > since
    return found


def _launched_before(device: Device) -> Ints:
    """When the work before each was launched to its stream."""
    found = np.full(device.id.size, NEVER, np.int64)
    launched = np.where(device.known, device.launched, NEVER)
    order = np.lexsort((launched, device.stream))
    same = device.stream[order][1:] == device.stream[order][:-1]
    found[order[1:][same]] = launched[order[:-1][same]]
    return found


def _is_inferable(trace: Trace, device: Device) -> Flags:
    """Whether work may have waited without a record: where waits are recorded, within graphs."""
    if not trace.sync_args.filter(pl.col("waits_on_stream") >= 0).height:
        return np.ones(device.id.size, bool)
    same = device.call[1:] == device.call[:-1]
    return np.asarray(np.append(same, False) | np.append(False, same))


def _inferred(device: Device, asked: Flags, made: Flags) -> Ints:
    """Work of another stream that its end alone shows that some work waited for it, or NONE.

    It ended after all else that is known to have held the work up: at any time if the stream may
    have been made to wait, else just before it began, while nothing else explains so long a wait.
    """
    when, _, link = device.in_turn()
    usual = np.where(link == LINK["launch"], device.typical_latency, device.typical_gap)
    late = device.start - when > np.maximum(SLACK, 2 * usual)
    found = np.full(device.id.size, NONE)
    at = np.flatnonzero(asked & (late | made))
    last = device.last_before(at, device.start[at], device.end > device.start)
    at, last = at[last != NONE], last[last != NONE]
    end = device.end[last]
    fits = (end > when[at]) & (made[at] | (device.start[at] - end <= SLACK))
    fits &= (device.stream[last] != device.stream[at]) & (device.start[last] < device.start[at])
    found[at[fits]] = last[fits]
    return found


def _callers_work(device: Device) -> Ints:
    """For collectives the work launched just before, if that was done when they began, or NONE.

    A communication library makes its stream wait for that of the caller.
    """
    number = np.arange(device.id.size)
    exchanges = device.kind == CODE["communication"]
    last = np.append(NONE, np.maximum.accumulate(np.where(exchanges, NONE, number)))[:-1]
    fits = exchanges & device.known & (last != NONE)
    fits[fits] &= device.known[last[fits]] & (device.end[last[fits]] <= device.start[fits])
    fits[fits] &= device.stream[last[fits]] != device.stream[fits]
    return np.where(fits, last, NONE)
