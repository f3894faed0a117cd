"""What let each serial thread of the host go on: the last device work or collective it waited for.

Read from the waits of the dependency graph: a call that the end of device work let return; the end
of a collective that the host makes; and, for threads beside the main one, the instant at which they
began to work, before which the main one is followed.
"""

from dataclasses import dataclass

import numpy as np

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.building import dependency_graph
from selftime.analysis.graph.nodes import node_of_call, nodes_of
from selftime.analysis.graph.segment_kinds import NEVER
from selftime.analysis.graph.serial_threads import serial_threads_of
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class _Releases:
    """What let a serial thread go on, in order of time."""

    when: Ints
    node: Ints
    """What it had waited for: a node that began before; NONE for the begin of its work."""


@dataclass(frozen=True, slots=True)
class HostEdges:
    """From some instants on the host back to what let it go on; shape (m,), times in ns."""

    hop: Ints
    """Since when the thread itself had been at work; before it the main one is followed."""
    enter: Ints
    """When the host could go on; NEVER if it never waited."""
    next: Ints
    """The node that it had waited for, or NONE."""


@dataclass(frozen=True, slots=True)
class Host:
    """What let the serial threads of a host go on."""

    main: int
    """The main serial thread, or NONE."""
    waits: dict[int, _Releases]
    begins: dict[int, _Releases]
    """When threads beside the main one began to work."""

    def back(self, thread: Ints, when: Ints) -> HostEdges:
        """From each instant on a serial thread back to what let it go on last."""
        hop = when.copy()
        enter, found = (np.full(when.size, fill, np.int64) for fill in (NEVER, NONE))
        for number in np.unique(thread).tolist():
            at = np.flatnonzero(thread == number)
            enter[at], found[at] = _last(self.waits.get(number), when[at])
            if number == self.main:
                hop[at] = enter[at]
                continue
            hop[at], _ = _last(self.begins.get(number), when[at])
            beside = at[enter[at] < hop[at]]
            enter[beside], found[beside] = _last(self.waits.get(self.main), hop[beside])
        return HostEdges(np.maximum(hop, enter), enter, found)


def _last(releases: _Releases | None, when: Ints) -> tuple[Ints, Ints]:
    """The last release until each instant: when it was, and the node."""
    if releases is None or not releases.when.size:
        return np.full(when.size, NEVER), np.full(when.size, NONE)
    at = np.searchsorted(releases.when, when, side="right") - 1
    known = at >= 0
    at = np.maximum(at, 0)
    return np.where(known, releases.when[at], NEVER), np.where(known, releases.node[at], NONE)


@cached_per_trace
def host_of(trace: Trace) -> Host:
    """What let the serial threads of a trace's host go on."""
    graph, nodes = dependency_graph(trace), nodes_of(trace)
    calls, work = graph.calls, graph.work
    held = np.flatnonzero(calls.held_by != NONE)
    by = calls.held_by[held]
    partner = calls.waits_call
    resumed = np.flatnonzero(partner != NONE)
    of_collective = calls.is_collective[partner[resumed]]
    begun, resumed = resumed[~of_collective], resumed[of_collective]
    own = nodes.collectives
    at = np.concatenate([held, own, resumed])
    when = np.concatenate(
        [np.minimum(work.end[by], calls.end[held]), calls.end[own], calls.end[resumed]]
    )
    passed = np.append(own, partner[resumed])
    node = np.append(by, node_of_call(calls.id.size, nodes, passed))
    return Host(
        serial_threads_of(trace).main,
        _by_thread(calls.thread[at], when, node),
        _by_thread(calls.thread[begun], calls.start[begun], np.full(begun.size, NONE)),
    )


def _by_thread(thread: Ints, when: Ints, node: Ints) -> dict[int, _Releases]:
    order = np.lexsort((node, when))
    return {
        number: _Releases(when[own], node[own])
        for number in np.unique(thread).tolist()
        for own in [order[thread[order] == number]]
    }
