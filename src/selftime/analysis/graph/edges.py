"""The ways back: from the begin of each node to what let it begin, whichever came last.

A way leads from an instant back to the node before it on the path, in up to three parts: a gap in
which nothing that is known held the work up, the host until it launched it, and, if that thread had
just begun to work, the main part of the host until then. Ways only lead to nodes before, so walks
come to an end.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.host_blocking import Host, host_of, last_done
from selftime.analysis.graph.nodes import HOST, NEVER, Nodes, nodes_of
from selftime.analysis.graph.segment_kinds import CODE, LINK, SLACK
from selftime.analysis.graph.serial_threads import NO_PART
from selftime.analysis.graph.stream_waits import is_made_to_wait, recorded_needs
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class Edges:
    """Ways back from some instants; arrays of shape (m,), times in ns.

    `enter <= hop <= cause <= begin`: the gap lies between `cause` and `begin`, the host's part
    between `hop` and `cause`, the main part of the host between `enter` and `hop`.
    """

    begin: Ints
    cause: Ints
    hop: Ints
    enter: Ints
    """When the node before is left; NEVER where there is none: the recording began."""
    part: Ints
    """The part of the host, or NO_PART."""
    next: Ints
    """The node before, or NONE."""
    gap: Ints
    """The kind of the gap, as in `CODE`."""
    link: Ints
    """What let the work begin, as in `LINK`."""


def joined(*several: Edges) -> Edges:
    """The ways one after the other."""
    return Edges(
        *(np.concatenate([getattr(one, f.name) for one in several]) for f in fields(Edges))
    )


def picked(ways: Edges, at: Ints) -> Edges:
    """Some of the ways."""
    return Edges(*(getattr(ways, f.name)[at] for f in fields(Edges)))


def _ways_from_host(host: Host, part: Ints, when: Ints) -> Edges:
    """The ways back from instants on a part of the host."""
    back = host.back(part, when)
    return Edges(
        begin=when,
        cause=when,
        hop=back.hop,
        enter=back.enter,
        part=part,
        next=back.next,
        gap=np.full(when.size, CODE["latency"]),
        link=np.full(when.size, LINK["host"]),
    )


def _ways_from_ends(node: Ints, end: Ints) -> Edges:
    """The ways back from instants in nodes, or at their ends: they lead into these."""
    nothing = np.full(end.size, NO_PART)
    return Edges(
        begin=end,
        cause=end,
        hop=end,
        enter=end,
        part=nothing,
        next=node,
        gap=np.full(end.size, CODE["latency"]),
        link=np.full(end.size, LINK["stream"]),
    )


def edges_into_step_ends(trace: Trace, host: Host, end: Ints, done: Ints) -> Edges:
    """The ways back from instants at which steps were done: their host, or the device after it.

    Args:
        trace: The trace.
        host: What held its host.
        end: When the host had ended each step, in ns.
        done: When it was done, in ns.
    """
    nodes = nodes_of(trace)
    order = np.argsort(nodes.end, kind="stable")
    at = np.searchsorted(nodes.end[order], done, side="right") - 1
    last = order[np.maximum(at, 0)] if order.size else np.full(at.size, NONE)
    on_device = (at >= 0) & (done > end)
    on_device[on_device] &= nodes.end[last[on_device]] == done[on_device]
    if host.threads.main == NO_PART:
        return _ways_from_last(nodes, np.where(at >= 0, last, NONE), done)
    by_host = _ways_from_host(host, np.full(done.size, host.threads.main), done)
    by_device = _ways_from_ends(last, done)
    return Edges(
        *(
            np.where(on_device, getattr(by_device, f.name), getattr(by_host, f.name))
            for f in fields(Edges)
        )
    )


def _ways_from_last(nodes: Nodes, last: Ints, done: Ints) -> Edges:
    """The ways back from instants to the work that ended last: nothing of a host is known."""
    ways = _ways_from_ends(last, done)
    end = np.append(nodes.end, NEVER)[last]
    unknown = np.full(done.size, CODE["unknown"])
    link = np.full(done.size, LINK["unknown"])
    return replace(ways, cause=end, hop=end, enter=end, gap=unknown, link=link)


@cached_per_trace
def edges_into_nodes(trace: Trace) -> Edges:
    """The way back from the begin of every node."""
    nodes, host = nodes_of(trace), host_of(trace)
    start, launched = nodes.start, np.minimum(nodes.launched, nodes.start)
    before, free = _stream_before(nodes)
    cause, found, link = free, before, np.where(before == NONE, LINK["unknown"], LINK["stream"])
    need = recorded_needs(trace, nodes)
    told = np.where(need == NONE, NEVER, np.minimum(nodes.end[need], start)) if need.size else need
    later = told > cause
    cause, found = np.where(later, told, cause), np.where(later, need, found)
    link = np.where(later, LINK["event"], link)
    later = launched > cause
    cause, found = np.where(later, launched, cause), np.where(later, NONE, found)
    link = np.where(later, LINK["launch"], link)
    made = is_made_to_wait(trace, nodes) & (need == NONE)
    other = _inferred(nodes, cause, made=made, told=need != NONE)
    seen = other != NONE
    cause = np.where(seen, nodes.end[other], cause) if seen.size else cause
    found, link = np.where(seen, other, found), np.where(seen, LINK["inferred"], link)
    explained = (start - cause <= SLACK) | ((link == LINK["launch"]) & ~made)
    gap = np.where(explained, CODE["latency"], CODE["unknown"])
    return _assembled(nodes, host, (cause, found, link, gap))


def _assembled(nodes: Nodes, host: Host, told: tuple[Ints, Ints, Ints, Ints]) -> Edges:
    """The ways from causes, nodes, links and kinds of gaps; from launches they go by the host."""
    cause, found, link, gap = told
    by_host = np.flatnonzero(link == LINK["launch"])
    back = host.back(nodes.part[by_host], cause[by_host])
    hop, enter = cause.copy(), cause.copy()
    hop[by_host], enter[by_host], found[by_host] = back.hop, back.enter, back.next
    part = np.full(cause.size, NO_PART)
    part[by_host] = nodes.part[by_host]
    on_host = nodes.stream == HOST
    link = np.where(on_host, LINK["host"], link)
    return Edges(nodes.start, cause, hop, enter, part, found, gap, link)


def _stream_before(nodes: Nodes) -> tuple[Ints, Ints]:
    """The node before each on its stream that ended last, and when, at the latest at its begin."""
    before = np.full(nodes.id.size, NONE, np.int64)
    for number in np.unique(nodes.stream).tolist():
        own = np.flatnonzero(nodes.stream == number)
        if number == HOST or own.size < 2:
            continue
        end = nodes.end[own]
        reach = np.maximum.accumulate(end)
        last = np.maximum.accumulate(np.where(end == reach, np.arange(own.size), 0))
        before[own[1:]] = own[last[:-1]]
    known = before != NONE
    free = np.full(nodes.id.size, NEVER, np.int64)
    free[known] = np.minimum(nodes.end[before[known]], nodes.start[known])
    return before, free


def _inferred(nodes: Nodes, cause: Ints, *, made: Flags, told: Flags) -> Ints:
    """Work of another stream that the end of alone shows that a node waited for it, or NONE.

    It ended after all else that is known to have held the node up: at any time if the stream may
    have been made to wait, else just before it began, while nothing else explains so long a wait.
    Where an event is told, nothing is inferred.
    """
    found = np.full(nodes.id.size, NONE, np.int64)
    late = (nodes.start - cause > SLACK) & ~told
    asked = np.flatnonzero((late | made) & (nodes.stream != HOST))
    start, launched = nodes.start[asked], nodes.launched[asked]
    limit = np.where(launched == NEVER, start, launched)
    last = last_done(nodes, np.flatnonzero(nodes.stream != HOST), start, limit + 1)
    known = last != NONE
    asked, last, start = asked[known], last[known], start[known]
    end = nodes.end[last]  # after the cause no work of the stream itself has ended
    fits = (end > cause[asked]) & (made[asked] | (start - end <= SLACK))
    found[asked[fits]] = last[fits]
    return found
