"""Builds the dependency graph of a trace."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.calls import CallNodes, call_nodes
from selftime.analysis.graph.device_edges import Device
from selftime.analysis.graph.graph import Calls, DependencyGraph
from selftime.analysis.graph.host_edges import HostWaits
from selftime.analysis.graph.segment_kinds import CODE
from selftime.analysis.graph.stream_waits import stream_waits
from selftime.analysis.idle.gaps import placed_work
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace

_KIND: Final = {
    "kernel": CODE["compute"],
    "communication": CODE["communication"],
    "memcpy": CODE["copy"],
    "memset": CODE["copy"],
}


@cached_per_trace
def dependency_graph(trace: Trace) -> DependencyGraph:
    """The dependency graph of a trace, which its critical paths and its replay are read from."""
    work = placed_work(trace).select("id", "start", "end", "kind", "launch", "device", "stream")
    work = work.with_columns(
        pl.col("kind").replace_strict(_KIND, return_dtype=pl.Int64),
        number=pl.struct("device", "stream").rank("dense").cast(pl.Int64) - 1,
    )
    streams = work.select("number", "device", "stream").unique().sort("number")
    nodes = call_nodes(trace, work["launch"])
    begin = _begin(trace, nodes.start)
    placed = _placed(trace, nodes, work)
    launched = np.bincount(placed["call"].to_numpy(), minlength=nodes.id.size)
    last = np.cumsum(launched)
    device = Device(placed, nodes.start, begin)
    waits, made = stream_waits(trace, nodes, device, streams)
    held = HostWaits(trace, nodes, device, last, streams).columns()
    read, waits, bindings = device.read(waits, made)
    return DependencyGraph(
        calls=_calls(nodes, begin, last - launched, last, held),
        work=read,
        waits=waits,
        bindings=bindings,
        begin=begin,
        threads=int(nodes.thread.max(initial=0)) + 1,
        streams=streams.height,
    )


def _calls(nodes: CallNodes, begin: int, first: Ints, last: Ints, held: dict[str, Any]) -> Calls:
    """The calls with what they waited for; those for other threads hold exactly so long."""
    partner = nodes.partner
    behind = np.where(partner != NONE, nodes.lag, held["after"])
    return Calls(
        id=nodes.id,
        thread=nodes.thread,
        start=nodes.start,
        end=nodes.end,
        before=_before(nodes, begin),
        first_work=first,
        last_work=last,
        step=nodes.step,
        is_collective=nodes.is_collective,
        waits_call=partner,
        **held | {"after": behind},
    )


def _before(nodes: CallNodes, begin: int) -> Ints:
    """Host time since the call before of the same thread: until the thread was idle."""
    found = np.zeros(nodes.id.size, np.int64)
    for thread in np.unique(nodes.thread):
        own = np.flatnonzero(nodes.thread == thread)
        left = np.append(begin, nodes.end[own][:-1])
        worked = np.minimum(np.maximum(nodes.idle_since[own], left), nodes.start[own])
        found[own] = worked - left
    return found


def _begin(trace: Trace, start: Ints) -> int:
    """When the program began: with its first call or its first step."""
    if not start.size:
        return 0
    steps = assessed_steps(trace)["start"].to_numpy()
    return int(np.concatenate([start, steps]).min())


def _placed(trace: Trace, nodes: CallNodes, work: pl.DataFrame) -> pl.DataFrame:
    """Work with the call that launched it, in the order of the calls.

    Work of which the launch is not known has the last call before it began that fits the order of
    its stream: it may have been launched so late.
    """
    call_of = np.full(trace.slices.height + 1, NONE, np.int64)
    named = np.flatnonzero(nodes.id != NONE)
    call_of[nodes.id[named]] = named
    call = pl.Series(call_of).gather(work["launch"])
    work = work.with_columns(call=call.set((call == NONE).fill_null(value=False), None))
    work = work.sort("number", "start", "id")
    known = work["call"].is_not_null()
    if not known.all():
        work = work.with_columns(call=_latest_call(nodes, work))
    return work.with_columns(known=known).sort("call", "start", "id")


def _latest_call(nodes: CallNodes, work: pl.DataFrame) -> pl.Series:
    """The call of each work; of those without one the last that there can be.

    Those without one were launched in the order in which they began.
    """
    start = work["start"].to_numpy()
    at = np.searchsorted(nodes.start, start, side="right") - 1
    before = pl.col("call").forward_fill().over("number").fill_null(0)
    after = pl.col("call").backward_fill().over("number").fill_null(max(nodes.id.size - 1, 0))
    bounds = work.with_columns(at=pl.Series(at)).select(
        "call", before=before, latest=pl.min_horizontal(pl.max_horizontal("at", before), after)
    )
    asked = bounds["call"].is_null().arg_true().to_numpy()
    asked = asked[np.argsort(start[asked], kind="stable")]
    latest = np.minimum.accumulate(bounds["latest"].to_numpy()[asked][::-1])[::-1]
    latest = np.maximum(latest, bounds["before"].to_numpy()[asked])
    return work["call"].clone().scatter(asked, latest)
