"""Condenses the dependency graph of one rank to its collectives, and the paths between them.

A collective begins once everything that it depends on is done: each path through the graph that
leads to it from an earlier collective, without passing another, gives `end + lag`. The lag of the
longest such path is kept for each earlier collective. So how long a rank takes to come to its
collectives can be computed anew from when the earlier ones ended, without its graph.

Beside collectives there are two other kinds of nodes: the ends of steps; and joints, which stand
where so many paths meet that what follows is told from there on.
"""

from typing import Final, NamedTuple

import numpy as np
import polars as pl

from selftime.analysis.graph.building import dependency_graph
from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_ALL_STREAMS,
    DependencyGraph,
    GraphCalls,
)
from selftime.analysis.graph.host_compute import hash_of_name, host_compute_in_spans
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.collectives import collectives_of_trace
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

FROM_BEGIN: Final = -1
"""Stands for the begin of the recording, from which a path without a collective leads."""
_MAX_PATHS_TO_A_NODE: Final = 4
"""Largest number of paths that are told on without a joint."""
PATH_NODES_SCHEMA: Final = {"collective": pl.UInt32, "step": pl.Int64, "time": pl.Int64}
PATHS_SCHEMA: Final = {
    "node": pl.UInt32,
    "before": pl.Int64,
    "lag": pl.Int64,
    "device_time": pl.Int64,
    "usual_device_time": pl.Int64,
    "host_time": pl.Int64,
    "work": pl.UInt64,
}


class PathsBetweenCollectives(NamedTuple):
    """The nodes of one rank in an order in which they follow from each other, and the paths."""

    nodes: pl.DataFrame
    """One row per node: collective, the row of `collectives_of_trace`, null if it is none; step,
    the row of the step that ends with it, null if it ends none; time, when it was reached, in ns.
    """
    paths: pl.DataFrame
    """One row per path: node, the row in `nodes` that it leads to; before, the row that it comes
    from, `FROM_BEGIN` if it comes from the begin of the recording; lag, the time from the end of
    that one, or from the begin of the recording, to this one, in ns; device_time and host_time, how
    much of it device work and the host take, in ns; usual_device_time, what the device work would
    take if each took the mean of all with its name, in ns; work, a hash of the names of the device
    work, in order: paths with the same one do the same.
    """


class _Path(NamedTuple):
    """The longest path from a node, with the columns of `PATHS_SCHEMA`; times in ns."""

    time: int
    device_time: int
    usual_device_time: int
    host_time: int
    work: int


class _Paths(NamedTuple):
    """The longest path from each earlier node, and what has come after all of them.

    What a thread or a stream does comes after all paths that led to it, so it is added once.
    """

    by_node: dict[int, _Path]
    """The path from each earlier node, by the number of that node; shared and never changed."""
    time: int = 0
    device_time: int = 0
    usual_device_time: int = 0
    host_time: int = 0
    work_factor: int = 1
    """The hash of a path's work becomes `work * work_factor + work_term`, modulo 2**64."""
    work_term: int = 0

    def complete(self, path: _Path) -> _Path:
        """Returns one of the paths with what has come after it."""
        return _Path(
            path.time + self.time,
            path.device_time + self.device_time,
            path.usual_device_time + self.usual_device_time,
            path.host_time + self.host_time,
            (path.work * self.work_factor + self.work_term) & _ALL_BITS,
        )


@cached_per_trace
def paths_between_collectives(trace: Trace) -> PathsBetweenCollectives:
    """Returns the collectives of one rank, the ends of its steps, and the paths between them.

    Of a rank without collectives there are none: nothing that it does is joined with other ranks.
    """
    rows = collectives_of_trace(trace)
    if not rows.height:
        return PathsBetweenCollectives(
            pl.DataFrame(schema=PATH_NODES_SCHEMA), pl.DataFrame(schema=PATHS_SCHEMA)
        )
    graph = dependency_graph(trace)
    row_of_slice = dict(zip(rows["id"].to_list(), range(rows.height), strict=True))
    condensing = _Condensing(trace, graph, row_of_slice)
    condensing.follow_calls()
    return PathsBetweenCollectives(
        pl.DataFrame(condensing.nodes, PATH_NODES_SCHEMA, orient="row"),
        pl.DataFrame(condensing.paths, PATHS_SCHEMA, orient="row"),
    )


class _Condensing:
    """Follows calls and device work in order, and keeps the paths to each thread and stream."""

    def __init__(self, trace: Trace, graph: DependencyGraph, row_of_slice: dict[int, int]) -> None:
        self.nodes: list[tuple[int | None, int | None, int]] = []
        self.paths: list[tuple[int, ...]] = []
        self._graph, self._trace = graph, trace
        self._row = row_of_slice
        begin = _Paths({FROM_BEGIN: _Path(graph.begin, 0, 0, 0, 0)})
        self._thread = [begin] * graph.thread_count
        self._stream = [begin] * graph.stream_count
        self._of_work: dict[int, _Paths] = {}
        self._of_call: dict[int, _Paths] = {}
        waits, calls = graph.stream_waits, graph.calls
        self._needed_work = set(waits.awaited_work.tolist()) | set(calls.awaited_work.tolist())
        self._needed_call = set(calls.awaited_call.tolist())
        first = np.searchsorted(waits.work, np.arange(graph.work.id.size + 1))
        self._first_wait = first.tolist()
        self._waits = list(zip(waits.awaited_work.tolist(), waits.lag.tolist(), strict=True))
        names = trace.slices["name"].gather(graph.work.id.astype(np.uint32)).cast(pl.String)
        duration = graph.work.end - graph.work.start
        named = pl.DataFrame({"name": names, "duration": duration})
        usual = named.select(pl.col("duration").mean().over("name").round().cast(pl.Int64))
        code = {name: hash_of_name(name) for name in names.unique()}
        work = graph.work
        columns = (work.id, work.stream, work.start, duration, usual.to_series().to_numpy())
        lags = (work.launch_latency, work.gap_after_previous_work)
        self._work = list(
            zip(
                *(column.tolist() for column in (*columns, *lags)),
                [code[name] for name in names],
                strict=True,
            )
        )

    def follow_calls(self) -> None:
        """Follows all calls in order of begin, and the work that each of them launches."""
        calls = self._graph.calls
        host = host_compute_in_spans(
            self._trace, calls.thread, calls.start - calls.host_time_before, calls.start
        )
        at = self._calls_to_follow(host.time)
        before = _time_before_followed_calls(calls, at)
        columns = (
            calls.thread[at],
            before,
            calls.own_time[at],
            calls.first_work[at],
            calls.last_work[at],
            calls.id[at],
            calls.is_collective[at],
            calls.step[at],
            calls.start[at],
            calls.end[at],
        )
        awaited_columns = (
            calls.awaited_call,
            calls.awaited_stream,
            calls.awaited_work,
            calls.delay_after_condition,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        computed_before = zip(*(column[at].tolist() for column in host), strict=True)
        waits = zip(*(column[at].tolist() for column in awaited_columns), strict=True)
        for number, call, computed, awaited in zip(
            at.tolist(), rows, computed_before, waits, strict=True
        ):
            thread, before_, own, first, last, id_, is_collective, step, start, end = call
            begun = self._thread[thread]
            begun = _followed(begun, before_, *computed) if computed[0] else _worked(begun, before_)
            for work in range(first, last):
                self._follow_work(work, begun)
            if is_collective and id_ in self._row:
                done = _from_node(self._add_node(begun, start, collective=self._row[id_]))
            else:
                done = self._after_awaited(_worked(begun, own), *awaited)
            done = self._with_joint(done, end)
            self._thread[thread] = done
            if number in self._needed_call:
                self._of_call[number] = done
            if step != NO_SLICE:
                self._add_node(_longest(done, *self._stream), end, step=step)

    def _calls_to_follow(self, computed_before: Ints) -> Ints:
        """Returns the calls on which more depends than the next call of their thread.

        Args:
            computed_before: What operators on the host compute before each call, in ns.
        """
        calls = self._graph.calls
        is_followed = (calls.last_work > calls.first_work) | calls.is_collective
        is_followed |= (calls.step != NO_SLICE) | (computed_before != 0)
        for awaited in (calls.awaited_call, calls.awaited_stream, calls.awaited_work):
            is_followed |= awaited != NO_SLICE
        is_followed[list(self._needed_call - {NO_SLICE})] = True
        return np.flatnonzero(is_followed)

    def _after_awaited(
        self, done: _Paths, partner: int, stream: int, work: int, after: int
    ) -> _Paths:
        """Returns the paths to the end of a call, with those over what it waits for."""
        if partner != NO_SLICE:
            awaited = [self._of_call[partner]] if partner in self._of_call else []
        elif stream == CODE_OF_ALL_STREAMS:
            awaited = self._stream
        elif stream != NO_SLICE:
            awaited = [self._stream[stream]]
        else:
            awaited = [self._of_work[work]] if work in self._of_work else []
        for paths in awaited:
            done = _longer(done, _later(paths, after))
        return done

    def _follow_work(self, at: int, called: _Paths) -> None:
        id_, stream, start, duration, usual, latency, gap, name = self._work[at]
        begun = _longer(_later(called, latency), _later(self._stream[stream], gap))
        for need, lag in self._waits[self._first_wait[at] : self._first_wait[at + 1]]:
            if need in self._of_work:
                begun = _longer(begun, _later(self._of_work[need], lag))
        if id_ in self._row:
            done = _from_node(self._add_node(begun, start, collective=self._row[id_]))
        else:
            done = _followed(begun, duration, duration, usual, name)
            done = self._with_joint(done, start + duration)
        self._stream[stream] = done
        if at in self._needed_work:
            self._of_work[at] = done

    def _with_joint(self, paths: _Paths, time: int) -> _Paths:
        """Returns the paths, or if they are many one from a joint at which they meet."""
        if len(paths.by_node) <= _MAX_PATHS_TO_A_NODE:
            return paths
        return _from_node(self._add_node(paths, time))

    def _add_node(
        self, paths: _Paths, time: int, collective: int | None = None, step: int | None = None
    ) -> int:
        number = len(self.nodes)
        self.nodes.append((collective, step, time))
        self.paths.extend(
            (number, before, *paths.complete(path)) for before, path in paths.by_node.items()
        )
        return number


def _time_before_followed_calls(calls: GraphCalls, followed: Ints) -> Ints:
    """Returns the host time in ns before each followed call since the one before on its thread.

    The calls between them take time on their thread, and no more.
    """
    is_passed = np.ones(calls.id.size, bool)
    is_passed[followed] = False
    before = calls.host_time_before.copy()
    for number in np.unique(calls.thread):
        own = np.flatnonzero(calls.thread == number)
        taken = np.where(is_passed[own], calls.host_time_before[own] + calls.own_time[own], 0)
        until = np.append(0, np.cumsum(taken))
        stop = np.flatnonzero(~is_passed[own])
        before[own[stop]] += np.diff(until[stop], prepend=0)
    return before[followed]


_START: Final = _Path(0, 0, 0, 0, 0)
_ALL_BITS: Final = (1 << 64) - 1
_HASH_FACTOR: Final = 0x9E3779B97F4A7C15
"""An odd number of 64 bits, by which a hash is multiplied for each work that follows."""


def _from_node(number: int) -> _Paths:
    return _Paths({number: _START})


def _later(paths: _Paths, time: int) -> _Paths:
    """Returns paths that are longer by a time in ns, in which nothing known works."""
    by_node, before, device_time, usual, host_time, factor, term = paths
    return _Paths(by_node, before + time, device_time, usual, host_time, factor, term)


def _worked(paths: _Paths, time: int) -> _Paths:
    """Returns paths that are longer by a time in ns that the host takes."""
    by_node, before, device_time, usual, host_time, factor, term = paths
    return _Paths(by_node, before + time, device_time, usual, host_time + time, factor, term)


def _followed(paths: _Paths, time: int, computed: int, usual: int, work: int) -> _Paths:
    """Returns paths that are longer by a time in ns, in part of which a device computes.

    Operators on a host count as work of a device: `computed` and `usual` in ns, and the hash `work`
    of its names. The host takes the rest of the time.
    """
    by_node, before, device_time, usual_before, host_time, factor, term = paths
    return _Paths(
        by_node,
        before + time,
        device_time + computed,
        usual_before + usual,
        host_time + time - computed,
        factor * _HASH_FACTOR & _ALL_BITS,
        (term * _HASH_FACTOR + work) & _ALL_BITS,
    )


def _longest(first: _Paths, *rest: _Paths) -> _Paths:
    """Returns the longest of all paths from each node; of equal ones the first."""
    for second in rest:
        first = _longer(first, second)
    return first


def _longer(first: _Paths, second: _Paths) -> _Paths:
    """Returns the longer path from each node; of equal ones that of `first`."""
    ahead, known = second.time - first.time, first.by_node
    if known is second.by_node:
        return second if ahead > 0 else first
    longer = [
        node
        for node, path in second.by_node.items()
        if node not in known or path.time + ahead > known[node].time
    ]
    if not longer:
        return first
    if len(longer) == len(second.by_node) and known.keys() <= second.by_node.keys():
        return second
    found = {node: first.complete(path) for node, path in known.items()}
    found |= {node: second.complete(second.by_node[node]) for node in longer}
    return _Paths(found)
