"""Finds what each node of the dependency graph waited for last, as an edge to the awaited node.

An edge leads from an instant back to the previous node on a critical path, in up to three spans:
a gap in which no known dependency delayed the work; the time of the host thread until it launched
the work; and, if that thread had just begun to work, the main thread's time until then. Edges lead
only to earlier nodes, so following them always ends.

The host's part of an edge is read from the waits in the dependency graph: a call that returned when
device work ended; the end of a collective on the host; and, for threads other than the main one,
the instant at which they began to work, before which the main thread is followed.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from selftime.analysis.graph.building import (
    CriticalPathNodes,
    critical_path_nodes,
    dependency_graph,
    path_nodes_of_calls,
)
from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_SEGMENT_KIND,
    CODE_OF_SEGMENT_LINK,
    MAX_REACTION_AFTER_WAIT_NS,
    TIME_BEFORE_RECORDING_NS,
)
from selftime.analysis.graph.serial_threads import serial_threads
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class _ThreadResumeTimes:
    """Instants (ns, ascending) at which one host thread continued after a wait or began to work."""

    resume_times: Ints
    awaited_nodes: Ints
    """The dependency graph node that ended the wait; -1 where the thread only began to work."""


@dataclass(frozen=True, slots=True)
class HostThreadEdges:
    """Edges from instants on host threads back to what each thread waited for last; times in ns."""

    main_thread_reached_at: Ints
    """When the thread itself began to work, in ns; before that instant the critical path follows
    the main thread.
    """
    previous_node_reached_at: Ints
    """When the thread could continue after its last wait, in ns;
    TIME_BEFORE_RECORDING_NS if it never waited.
    """
    awaited_node: Ints
    """The dependency graph node that the thread waited for last, or -1 if there is none."""


@dataclass(frozen=True, slots=True)
class HostResumeTimes:
    """Times (ns) at which each host thread continued after a wait or began to work."""

    main_thread: int
    """The serial thread that contains the main thread, as in `SerialThreads`, or -1 if there is
    none.
    """
    resumes_after_waits: dict[int, _ThreadResumeTimes]
    begins_of_work: dict[int, _ThreadResumeTimes]
    """Maps the number of each serial thread, except the main one, to the times at which it began to
    work.
    """

    def edges_to_last_wait(self, thread_numbers: Ints, instants: Ints) -> HostThreadEdges:
        """Returns for each instant on a host thread the edge to what the thread last waited for."""
        thread_from = instants.copy()
        resumed, found = (
            np.full(instants.size, fill, np.int64) for fill in (TIME_BEFORE_RECORDING_NS, NO_SLICE)
        )
        for number in np.unique(thread_numbers).tolist():
            at = np.flatnonzero(thread_numbers == number)
            resumed[at], found[at] = _last_resume_times_and_nodes(
                self.resumes_after_waits.get(number), instants[at]
            )
            if number == self.main_thread:
                thread_from[at] = resumed[at]
                continue
            thread_from[at], _ = _last_resume_times_and_nodes(
                self.begins_of_work.get(number), instants[at]
            )
            beside = at[resumed[at] < thread_from[at]]
            resumed[beside], found[beside] = _last_resume_times_and_nodes(
                self.resumes_after_waits.get(self.main_thread), thread_from[beside]
            )
        return HostThreadEdges(np.maximum(thread_from, resumed), resumed, found)


def _last_resume_times_and_nodes(
    resume_times: _ThreadResumeTimes | None, instants: Ints
) -> tuple[Ints, Ints]:
    """Returns when (ns) a thread last resumed before each instant, and the node it had awaited."""
    if resume_times is None or not resume_times.resume_times.size:
        return np.full(instants.size, TIME_BEFORE_RECORDING_NS), np.full(instants.size, NO_SLICE)
    at = np.searchsorted(resume_times.resume_times, instants, side="right") - 1
    known = at >= 0
    at = np.maximum(at, 0)
    return np.where(known, resume_times.resume_times[at], TIME_BEFORE_RECORDING_NS), np.where(
        known, resume_times.awaited_nodes[at], NO_SLICE
    )


@cached_per_trace
def host_resume_times(trace: Trace) -> HostResumeTimes:
    """Returns the times (ns) at which each host thread continued after a wait or began to work."""
    graph, nodes = dependency_graph(trace), critical_path_nodes(trace)
    calls, work = graph.calls, graph.work
    held = np.flatnonzero(calls.released_by != NO_SLICE)
    by = calls.released_by[held]
    partner = calls.awaited_call
    resumed = np.flatnonzero(partner != NO_SLICE)
    of_collective = calls.is_collective[partner[resumed]]
    begun, resumed = resumed[~of_collective], resumed[of_collective]
    own = nodes.host_collective_calls
    at = np.concatenate([held, own, resumed])
    when = np.concatenate(
        [np.minimum(work.end[by], calls.end[held]), calls.end[own], calls.end[resumed]]
    )
    passed = np.append(own, partner[resumed])
    node = np.append(by, path_nodes_of_calls(calls.id.size, nodes, passed))
    return HostResumeTimes(
        serial_threads(trace).main_thread,
        _resume_times_by_thread(calls.thread[at], when, node),
        _resume_times_by_thread(
            calls.thread[begun], calls.start[begun], np.full(begun.size, NO_SLICE)
        ),
    )


def _resume_times_by_thread(
    thread_numbers: Ints, resume_times: Ints, awaited_nodes: Ints
) -> dict[int, _ThreadResumeTimes]:
    """Returns for each thread number its resume times (ns) and the graph nodes it awaited."""
    order = np.lexsort((awaited_nodes, resume_times))
    return {
        number: _ThreadResumeTimes(resume_times[own], awaited_nodes[own])
        for number in np.unique(thread_numbers).tolist()
        for own in [order[thread_numbers[order] == number]]
    }


@dataclass(frozen=True, slots=True)
class CriticalPathEdges:
    """Edges of critical paths, each from an instant (ns) back to the previous node on the path.

    `previous_node_reached_at <= main_thread_reached_at <= cause <= begin`: the gap lies between
    `cause` and `begin`, the time of the host thread between `main_thread_reached_at` and `cause`,
    that of the main thread between `previous_node_reached_at` and `main_thread_reached_at`.
    """

    begin: Ints
    """When the node that waited began, in ns."""
    cause: Ints
    """When the edge leaves its own host thread, in ns: the begin of the gap before `begin`."""
    main_thread_reached_at: Ints
    """When the path, going back, changes from the edge's own host thread to the main thread."""
    previous_node_reached_at: Ints
    """When the path reaches the previous node, in ns; TIME_BEFORE_RECORDING_NS if there is none."""
    thread: Ints
    """The number of the host thread that the edge follows, or -1 if there is none; threads that
    take turns share a number.
    """
    previous_node: Ints
    """The previous node on the critical path, or -1 if there is none."""
    gap_code: Ints
    """The code, from `CODE_OF_SEGMENT_KIND`, of the gap between the edge and the node that waited.
    """
    link_code: Ints
    """The code, from `CODE_OF_SEGMENT_LINK`, of the reason why the waiting work began."""


def concatenate_edges(*edge_sets_in_order: CriticalPathEdges) -> CriticalPathEdges:
    """Returns one table with the edges of all given tables, in the given order."""
    return CriticalPathEdges(
        *(
            np.concatenate([getattr(edges, f.name) for edges in edge_sets_in_order])
            for f in fields(CriticalPathEdges)
        )
    )


def select_edges(edges: CriticalPathEdges, indexes: Ints) -> CriticalPathEdges:
    """Returns the critical path edges at the given indexes."""
    return CriticalPathEdges(*(getattr(edges, f.name)[indexes] for f in fields(CriticalPathEdges)))


def _edges_along_host_threads(
    resume_times: HostResumeTimes, thread_numbers: Ints, instants: Ints
) -> CriticalPathEdges:
    """Returns edges from instants on host threads back to what each thread last waited for."""
    back = resume_times.edges_to_last_wait(thread_numbers, instants)
    return CriticalPathEdges(
        begin=instants,
        cause=instants,
        main_thread_reached_at=back.main_thread_reached_at,
        previous_node_reached_at=back.previous_node_reached_at,
        thread=thread_numbers,
        previous_node=back.awaited_node,
        gap_code=np.full(instants.size, CODE_OF_SEGMENT_KIND["latency"]),
        link_code=np.full(instants.size, CODE_OF_SEGMENT_LINK["host"]),
    )


def _edges_inside_nodes(nodes: Ints, instants: Ints) -> CriticalPathEdges:
    """Returns edges of length zero, each from an instant to the node that runs or ends then."""
    return CriticalPathEdges(
        begin=instants,
        cause=instants,
        main_thread_reached_at=instants,
        previous_node_reached_at=instants,
        thread=np.full(instants.size, NO_SLICE),
        previous_node=nodes,
        gap_code=np.full(instants.size, CODE_OF_SEGMENT_KIND["latency"]),
        link_code=np.full(instants.size, CODE_OF_SEGMENT_LINK["stream"]),
    )


def dependency_edges_into_step_ends(
    trace: Trace, host_end_of_step: Ints, done_time_of_step: Ints
) -> CriticalPathEdges:
    """Returns the edge from each step's end back to the host or device work that ended it.

    They lead to the device if it ended the step later than the host.

    Args:
        trace: The trace.
        host_end_of_step: When the host ended each step, in ns.
        done_time_of_step: When the step was done, in ns.
    """
    nodes, host = critical_path_nodes(trace), host_resume_times(trace)
    order = np.argsort(nodes.end, kind="stable")
    at = np.searchsorted(nodes.end[order], done_time_of_step, side="right") - 1
    last = order[np.maximum(at, 0)] if order.size else np.full(at.size, NO_SLICE)
    on_device = (at >= 0) & (done_time_of_step > host_end_of_step)
    on_device[on_device] &= nodes.end[last[on_device]] == done_time_of_step[on_device]
    if host.main_thread == NO_SLICE:
        return _edges_to_last_work(nodes, np.where(at >= 0, last, NO_SLICE), done_time_of_step)
    by_host = _edges_along_host_threads(
        host, np.full(done_time_of_step.size, host.main_thread), done_time_of_step
    )
    by_device = _edges_inside_nodes(last, done_time_of_step)
    return CriticalPathEdges(
        *(
            np.where(on_device, getattr(by_device, f.name), getattr(by_host, f.name))
            for f in fields(CriticalPathEdges)
        )
    )


def _edges_to_last_work(
    nodes: CriticalPathNodes, last_node: Ints, done_time_of_step: Ints
) -> CriticalPathEdges:
    """Returns edges from step ends to the device work that ended last, in traces without host."""
    edges = _edges_inside_nodes(last_node, done_time_of_step)
    end = np.append(nodes.end, TIME_BEFORE_RECORDING_NS)[last_node]
    unknown = np.full(done_time_of_step.size, CODE_OF_SEGMENT_KIND["unknown"])
    link = np.full(done_time_of_step.size, CODE_OF_SEGMENT_LINK["unknown"])
    return replace(
        edges,
        cause=end,
        main_thread_reached_at=end,
        previous_node_reached_at=end,
        gap_code=unknown,
        link_code=link,
    )


@cached_per_trace
def dependency_edges_into_nodes(trace: Trace) -> CriticalPathEdges:
    """Returns for each of `critical_path_nodes` the edge back to the dependency that ended last."""
    graph, nodes = dependency_graph(trace), critical_path_nodes(trace)
    bindings, host = graph.last_dependencies, nodes.host_collective_calls
    start = nodes.start
    source = np.append(bindings.awaited_work, np.full(host.size, NO_SLICE))
    link = np.append(bindings.link_code, np.full(host.size, CODE_OF_SEGMENT_LINK["launch"]))
    unexplained = np.append(bindings.has_unknown_wait, np.zeros(host.size, bool))
    cause = np.minimum(np.append(nodes.end, TIME_BEFORE_RECORDING_NS)[source], start)
    by_host = np.flatnonzero(link == CODE_OF_SEGMENT_LINK["launch"])
    called = graph.calls.start[nodes.call[by_host]]
    cause[by_host] = np.minimum(called, start[by_host])
    explained = (start - cause <= MAX_REACTION_AFTER_WAIT_NS) | (
        (link == CODE_OF_SEGMENT_LINK["launch"]) & ~unexplained
    )
    thread = np.full(start.size, NO_SLICE)
    thread[by_host] = graph.calls.thread[nodes.call[by_host]]
    back = host_resume_times(trace).edges_to_last_wait(thread[by_host], cause[by_host])
    thread_from, resumed = cause.copy(), cause.copy()
    thread_from[by_host], resumed[by_host], source[by_host] = (
        back.main_thread_reached_at,
        back.previous_node_reached_at,
        back.awaited_node,
    )
    link[graph.work.id.size :] = CODE_OF_SEGMENT_LINK["host"]
    gap = np.where(explained, CODE_OF_SEGMENT_KIND["latency"], CODE_OF_SEGMENT_KIND["unknown"])
    return CriticalPathEdges(start, cause, thread_from, resumed, thread, source, gap, link)
