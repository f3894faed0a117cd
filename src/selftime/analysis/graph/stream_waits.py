"""What made work of one stream wait for work of another, as the trace tells it.

The device's own records of waits for events (`enable_cuda_sync_events`) tell the stream that is
waited for, and the call that recorded the event. Without them a call such as cudaStreamWaitEvent
shows that some stream was made to wait, and not for what.
"""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.graph.nodes import NEVER, Nodes
from selftime.analysis.slice_filters import runtime_calls_by_name
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE
from selftime.trace import Trace


def recorded_needs(trace: Trace, nodes: Nodes) -> Ints:
    """For each node the last work of another stream that a recorded event made it wait for."""
    found = np.full(nodes.id.size, NONE, np.int64)
    waiting, needed = [found[:0]], [found[:0]]
    keys = ("device", "stream", "waits_on_stream")
    for places, own in _waits(trace).group_by(*keys, maintain_order=True):
        device, stream, other = places
        waits, works = (nodes.streams.get((device, number)) for number in (stream, other))
        if waits is None or works is None or waits == works:
            continue
        waiting.append(_launched(nodes, waits, own["asked"].to_numpy(), 0))
        needed.append(_launched(nodes, works, own["recorded"].to_numpy(), -1))
    after, before = np.concatenate(waiting), np.concatenate(needed)
    known = (after != NONE) & (before != NONE)
    after, before = after[known], before[known]
    earlier = nodes.start[before] < nodes.start[after]
    after, before = after[earlier], before[earlier]
    order = np.argsort(nodes.end[before], kind="stable")  # what ends last is set last
    found[after[order]] = before[order]
    return found


def _launched(nodes: Nodes, stream: int, when: Ints, place: int) -> Ints:
    """Of a stream the first work launched from each instant on, or with place -1 the last before.

    Work of which it is not known when it was launched is neither.
    """
    own = np.flatnonzero((nodes.stream == stream) & (nodes.launched != NEVER))
    own = own[np.argsort(nodes.launched[own], kind="stable")]
    at = np.searchsorted(nodes.launched[own], when, side="left") + place
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


def is_made_to_wait(trace: Trace, nodes: Nodes) -> Flags:
    """Whether a call made a stream wait since the last launch to a node's stream by its thread."""
    calls = runtime_calls_by_name(trace, names.is_stream_wait)
    found = np.zeros(nodes.id.size, bool)
    thread = trace.tracks["thread"].gather(calls["track"]).cast(pl.Int64).to_numpy()
    start = calls["start"].to_numpy()
    before = _launched_before(nodes)
    for number in np.unique(thread).tolist():
        made = np.sort(start[thread == number])
        mine = np.flatnonzero((nodes.thread == number) & (nodes.launched != NEVER))
        until = np.searchsorted(made, nodes.launched[mine], side="left")
        since = np.searchsorted(made, before[mine], side="left")
        found[mine] = until > since
    return found


def _launched_before(nodes: Nodes) -> Ints:
    """When the work before each was launched to its stream."""
    found = np.full(nodes.id.size, NEVER, np.int64)
    order = np.lexsort((nodes.launched, nodes.stream))
    same = nodes.stream[order][1:] == nodes.stream[order][:-1]
    found[order[1:][same]] = nodes.launched[order[:-1][same]]
    return found
