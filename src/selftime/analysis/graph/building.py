"""Builds the dependency graph of a trace, and lists the nodes that a critical path can visit."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.device.device_work import device_work
from selftime.analysis.graph.calls import HostCallNodes, host_call_nodes
from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_SEGMENT_KIND,
    DependencyGraph,
    GraphCalls,
)
from selftime.analysis.graph.device_work_dependencies import LaunchedDeviceWork
from selftime.analysis.graph.host_call_waits import HostCallWaits
from selftime.analysis.graph.stream_waits import stream_waits
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

_SEGMENT_KIND_CODE_OF_WORK: Final = {
    "kernel": CODE_OF_SEGMENT_KIND["compute"],
    "communication": CODE_OF_SEGMENT_KIND["communication"],
    "memcpy": CODE_OF_SEGMENT_KIND["copy"],
    "memset": CODE_OF_SEGMENT_KIND["copy"],
}


@cached_per_trace
def dependency_graph(trace: Trace) -> DependencyGraph:
    """Returns a trace's dependency graph: host calls, device work, what each waited for."""
    work = device_work(trace).select("id", "start", "end", "kind", "launch", "device", "stream")
    work = work.with_columns(
        pl.col("kind").replace_strict(_SEGMENT_KIND_CODE_OF_WORK, return_dtype=pl.Int64),
        number=pl.struct("device", "stream").rank("dense").cast(pl.Int64) - 1,
    )
    streams = work.select("number", "device", "stream").unique().sort("number")
    nodes = host_call_nodes(trace, work["launch"])
    begin = _program_begin_ns(trace, nodes.start)
    placed = _device_work_with_launch_calls(trace, nodes, work)
    launched = np.bincount(placed["call"].to_numpy(), minlength=nodes.id.size)
    last = np.cumsum(launched)
    device = LaunchedDeviceWork(placed, nodes.start, begin)
    waits, made = stream_waits(trace, nodes, device, streams)
    held = HostCallWaits(trace, nodes, device, last, streams).wait_columns_of_calls()
    read, waits, bindings = device.work_with_dependencies(waits, made)
    return DependencyGraph(
        calls=_graph_calls_with_waits(nodes, begin, last - launched, last, held),
        work=read,
        stream_waits=waits,
        last_dependencies=bindings,
        begin=begin,
        thread_count=int(nodes.thread.max(initial=0)) + 1,
        stream_count=streams.height,
    )


def _graph_calls_with_waits(
    calls: HostCallNodes,
    program_begin: int,
    first_work: Ints,
    last_work: Ints,
    wait_columns: dict[str, Any],
) -> GraphCalls:
    """Returns the host calls of the dependency graph, each with what it waited for.

    The lag of a call after one of another thread is kept exactly as recorded.
    """
    partner = calls.awaited_call
    behind = np.where(
        partner != NO_SLICE, calls.lag_after_awaited_call, wait_columns["delay_after_condition"]
    )
    return GraphCalls(
        id=calls.id,
        thread=calls.thread,
        start=calls.start,
        end=calls.end,
        host_time_before=_host_time_before_calls(calls, program_begin),
        first_work=first_work,
        last_work=last_work,
        step=calls.step,
        is_collective=calls.is_collective,
        awaited_call=partner,
        **wait_columns | {"delay_after_condition": behind},
    )


def _host_time_before_calls(calls: HostCallNodes, program_begin: int) -> Ints:
    """Returns for each call the host time (ns) between the thread's previous call and this one.

    It ends when the thread became idle.
    """
    found = np.zeros(calls.id.size, np.int64)
    for thread in np.unique(calls.thread):
        own = np.flatnonzero(calls.thread == thread)
        left = np.append(program_begin, calls.end[own][:-1])
        worked = np.minimum(np.maximum(calls.idle_since[own], left), calls.start[own])
        found[own] = worked - left
    return found


def _program_begin_ns(trace: Trace, call_starts: Ints) -> int:
    """Returns when the program began, in ns: the begin of its first call or first step."""
    if not call_starts.size:
        return 0
    steps = steps_with_counted_flags(trace)["start"].to_numpy()
    return int(np.concatenate([call_starts, steps]).min())


def _device_work_with_launch_calls(
    trace: Trace, calls: HostCallNodes, work: pl.DataFrame
) -> pl.DataFrame:
    """Returns device slices, each with the call that launched it, in order of the calls.

    Work whose launch is unknown is assigned the last call before it began that fits the order of
    its stream: the latest at which it may have been launched.
    """
    call_of = np.full(trace.slices.height + 1, NO_SLICE, np.int64)
    named = np.flatnonzero(calls.id != NO_SLICE)
    call_of[calls.id[named]] = named
    call = pl.Series(call_of).gather(work["launch"])
    work = work.with_columns(call=call.set((call == NO_SLICE).fill_null(value=False), None))
    work = work.sort("number", "start", "id")
    known = work["call"].is_not_null()
    if not known.all():
        work = work.with_columns(call=_known_or_latest_launch_call(calls, work))
    return work.with_columns(known=known).sort("call", "start", "id")


def _known_or_latest_launch_call(calls: HostCallNodes, work: pl.DataFrame) -> pl.Series:
    """Returns the call that launched each device slice, or if unknown the latest possible call.

    Work without a call is assumed to be launched in the order in which it began.
    """
    start = work["start"].to_numpy()
    at = np.searchsorted(calls.start, start, side="right") - 1
    before = pl.col("call").forward_fill().over("number").fill_null(0)
    after = pl.col("call").backward_fill().over("number").fill_null(max(calls.id.size - 1, 0))
    bounds = work.with_columns(at=pl.Series(at)).select(
        "call", before=before, latest=pl.min_horizontal(pl.max_horizontal("at", before), after)
    )
    asked = bounds["call"].is_null().arg_true().to_numpy()
    asked = asked[np.argsort(start[asked], kind="stable")]
    latest = np.minimum.accumulate(bounds["latest"].to_numpy()[asked][::-1])[::-1]
    latest = np.maximum(latest, bounds["before"].to_numpy()[asked])
    return work["call"].clone().scatter(asked, latest)


@dataclass(frozen=True, slots=True)
class CriticalPathNodes:
    """The nodes that a critical path can visit: all device work, then collectives on the host.

    Arrays of shape (n,), times in ns.
    """

    id: Ints
    start: Ints
    end: Ints
    kind: Ints
    """The code of the node's kind, as in `CODE_OF_SEGMENT_KIND`."""
    call: Ints
    """The index of the call that launched the work, or of the host collective itself; -1 if
    unknown.
    """
    host_collective_calls: Ints
    """The indexes of the calls that are collectives on the host, in the order of their nodes."""


@cached_per_trace
def critical_path_nodes(trace: Trace) -> CriticalPathNodes:
    """Returns the nodes of a trace's dependency graph that a critical path can visit."""
    graph = dependency_graph(trace)
    calls, work = graph.calls, graph.work
    host = np.flatnonzero(calls.is_collective)
    return CriticalPathNodes(
        id=np.append(work.id, calls.id[host]),
        start=np.append(work.start, calls.start[host]),
        end=np.append(work.end, calls.end[host]),
        kind=np.append(
            graph.last_dependencies.kind_code,
            np.full(host.size, CODE_OF_SEGMENT_KIND["communication"]),
        ),
        call=np.append(graph.last_dependencies.call, host),
        host_collective_calls=host,
    )


def path_nodes_of_calls(call_count: int, nodes: CriticalPathNodes, calls: Ints) -> Ints:
    """Returns for each call that is a host collective its node; -1 for other calls."""
    place = np.full(call_count + 1, NO_SLICE)
    first = nodes.id.size - nodes.host_collective_calls.size
    place[nodes.host_collective_calls] = first + np.arange(nodes.host_collective_calls.size)
    return place[calls]
