"""The binding edges: from the begin of each node back to what it depends on and was over last.

An edge leads from an instant back to the node before it on a critical path, in up to three spans:
a gap in which nothing that is known held the work up; the host's, until it launched the work; and,
if that thread had just begun to work, the main thread's until then. Edges only lead to nodes
before, so that following them comes to an end.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.building import dependency_graph
from selftime.analysis.graph.host_releases import Host, host_of
from selftime.analysis.graph.nodes import Nodes, nodes_of
from selftime.analysis.graph.segment_kinds import CODE, LINK, NEVER, SLACK
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges back from some instants; arrays of shape (m,), times in ns.

    `enter <= hop <= cause <= begin`: the gap lies between `cause` and `begin`, the host's span
    between `hop` and `cause`, the main thread's between `enter` and `hop`.
    """

    begin: Ints
    cause: Ints
    hop: Ints
    enter: Ints
    """When the node before is left; NEVER where there is none: the recording began."""
    thread: Ints
    """The serial thread of the host, or NONE."""
    next: Ints
    """The node before, or NONE."""
    gap: Ints
    """The kind of the gap, as in `CODE`."""
    link: Ints
    """What let the work begin, as in `LINK`."""


def joined(*several: Edges) -> Edges:
    """The edges one after the other."""
    return Edges(
        *(np.concatenate([getattr(one, f.name) for one in several]) for f in fields(Edges))
    )


def picked(edges: Edges, at: Ints) -> Edges:
    """Some of the edges."""
    return Edges(*(getattr(edges, f.name)[at] for f in fields(Edges)))


def _from_host(host: Host, thread: Ints, when: Ints) -> Edges:
    """The edges back from instants on a serial thread of the host."""
    back = host.back(thread, when)
    return Edges(
        begin=when,
        cause=when,
        hop=back.hop,
        enter=back.enter,
        thread=thread,
        next=back.next,
        gap=np.full(when.size, CODE["latency"]),
        link=np.full(when.size, LINK["host"]),
    )


def _from_ends(node: Ints, end: Ints) -> Edges:
    """The edges back from instants in nodes, or at their ends: they lead into these."""
    return Edges(
        begin=end,
        cause=end,
        hop=end,
        enter=end,
        thread=np.full(end.size, NONE),
        next=node,
        gap=np.full(end.size, CODE["latency"]),
        link=np.full(end.size, LINK["stream"]),
    )


def edges_into_step_ends(trace: Trace, end: Ints, done: Ints) -> Edges:
    """The edges back from instants at which steps were done: their host, or the device after it.

    Args:
        trace: The trace.
        end: When the host had ended each step, in ns.
        done: When it was done, in ns.
    """
    nodes, host = nodes_of(trace), host_of(trace)
    order = np.argsort(nodes.end, kind="stable")
    at = np.searchsorted(nodes.end[order], done, side="right") - 1
    last = order[np.maximum(at, 0)] if order.size else np.full(at.size, NONE)
    on_device = (at >= 0) & (done > end)
    on_device[on_device] &= nodes.end[last[on_device]] == done[on_device]
    if host.main == NONE:
        return _from_last(nodes, np.where(at >= 0, last, NONE), done)
    by_host = _from_host(host, np.full(done.size, host.main), done)
    by_device = _from_ends(last, done)
    return Edges(
        *(
            np.where(on_device, getattr(by_device, f.name), getattr(by_host, f.name))
            for f in fields(Edges)
        )
    )


def _from_last(nodes: Nodes, last: Ints, done: Ints) -> Edges:
    """The edges back from instants to the work that ended last: nothing of a host is known."""
    edges = _from_ends(last, done)
    end = np.append(nodes.end, NEVER)[last]
    unknown = np.full(done.size, CODE["unknown"])
    link = np.full(done.size, LINK["unknown"])
    return replace(edges, cause=end, hop=end, enter=end, gap=unknown, link=link)


@cached_per_trace
def edges_into_nodes(trace: Trace) -> Edges:
    """The binding edge of every node of `nodes_of`: for a collective of the host, its host."""
    graph, nodes = dependency_graph(trace), nodes_of(trace)
    bindings, host = graph.bindings, nodes.collectives
    start = nodes.start
    source = np.append(bindings.source, np.full(host.size, NONE))
    link = np.append(bindings.link, np.full(host.size, LINK["launch"]))
    unexplained = np.append(bindings.unexplained, np.zeros(host.size, bool))
    cause = np.minimum(np.append(nodes.end, NEVER)[source], start)
    by_host = np.flatnonzero(link == LINK["launch"])
    called = graph.calls.start[nodes.call[by_host]]
    cause[by_host] = np.minimum(called, start[by_host])
    explained = (start - cause <= SLACK) | ((link == LINK["launch"]) & ~unexplained)
    thread = np.full(start.size, NONE)
    thread[by_host] = graph.calls.thread[nodes.call[by_host]]
    back = host_of(trace).back(thread[by_host], cause[by_host])
    hop, enter = cause.copy(), cause.copy()
    hop[by_host], enter[by_host], source[by_host] = back.hop, back.enter, back.next
    link[graph.work.id.size :] = LINK["host"]
    gap = np.where(explained, CODE["latency"], CODE["unknown"])
    return Edges(start, cause, hop, enter, thread, source, gap, link)
