"""Condenses the dependency graph of one rank to its collectives, and the paths between them.

A collective begins once everything that it depends on is done: each path through the graph that
leads to it from an earlier collective, without passing another, gives `end + lag`. The lag of the
longest such path is kept for each earlier collective. So how long a rank takes to come to its
collectives can be computed anew from when the earlier ones ended, without its graph.

Beside collectives there are two other kinds of nodes: the ends of steps; and joints, which stand
where so many paths meet that what follows is told from there on.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from selftime.analysis.graph.building import dependency_graph
from selftime.analysis.graph.dependency_graphs import CODE_OF_ALL_STREAMS, DependencyGraph
from selftime.analysis.graph.host_compute import hash_of_name, host_compute_in_spans
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.collectives import collectives_of_trace
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


_Paths: TypeAlias = dict[int, _Path]
"""The longest path from each earlier node, by the number of that node."""


@cached_per_trace
def paths_between_collectives(trace: Trace) -> PathsBetweenCollectives:
    """Returns the collectives of one rank, the ends of its steps, and the paths between them."""
    graph = dependency_graph(trace)
    rows = collectives_of_trace(trace)
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
        begin: _Paths = {FROM_BEGIN: _Path(graph.begin, 0, 0, 0, 0)}
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
        columns = (
            calls.thread,
            calls.host_time_before,
            calls.own_time,
            calls.first_work,
            calls.last_work,
            calls.id,
            calls.is_collective,
            calls.step,
            calls.start,
            calls.end,
            *host_compute_in_spans(
                self._trace, calls.thread, calls.start - calls.host_time_before, calls.start
            ),
        )
        for at, call in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            thread, before, own, first, last, id_, is_collective, step, start, end = call[:10]
            begun = _computed(self._thread[thread], before, *call[10:])
            for work in range(first, last):
                self._follow_work(work, begun)
            if is_collective and id_ in self._row:
                done: _Paths = {self._add_node(begun, start, collective=self._row[id_]): _START}
            else:
                done = _longest([_worked(begun, own), *self._awaited(at)])
            done = self._with_joint(done, end)
            self._thread[thread] = done
            if at in self._needed_call:
                self._of_call[at] = done
            if step != NO_SLICE:
                self._add_node(_longest([done, *self._stream]), end, step=step)

    def _awaited(self, call: int) -> Iterable[_Paths]:
        """Yields the paths over what a call waits for."""
        calls = self._graph.calls
        after = int(calls.delay_after_condition[call])
        partner, stream = int(calls.awaited_call[call]), int(calls.awaited_stream[call])
        work = int(calls.awaited_work[call])
        if partner != NO_SLICE:
            if partner in self._of_call:
                yield _later(self._of_call[partner], after)
        elif stream == CODE_OF_ALL_STREAMS:
            yield from (_later(paths, after) for paths in self._stream)
        elif stream != NO_SLICE:
            yield _later(self._stream[stream], after)
        elif work in self._of_work:
            yield _later(self._of_work[work], after)

    def _follow_work(self, at: int, called: _Paths) -> None:
        id_, stream, start, duration, usual, latency, gap, name = self._work[at]
        ready = [_later(called, latency), _later(self._stream[stream], gap)]
        for need, lag in self._waits[self._first_wait[at] : self._first_wait[at + 1]]:
            if need in self._of_work:
                ready.append(_later(self._of_work[need], lag))
        begun = _longest(ready)
        if id_ in self._row:
            done: _Paths = {self._add_node(begun, start, collective=self._row[id_]): _START}
        else:
            done = {
                before: _Path(
                    path.time + duration,
                    path.device_time + duration,
                    path.usual_device_time + usual,
                    path.host_time,
                    hash((path.work, name)),
                )
                for before, path in begun.items()
            }
            done = self._with_joint(done, start + duration)
        self._stream[stream] = done
        if at in self._needed_work:
            self._of_work[at] = done

    def _with_joint(self, paths: _Paths, time: int) -> _Paths:
        """Returns the paths, or if they are many one from a joint at which they meet."""
        if len(paths) <= _MAX_PATHS_TO_A_NODE:
            return paths
        return {self._add_node(paths, time): _START}

    def _add_node(
        self, paths: _Paths, time: int, collective: int | None = None, step: int | None = None
    ) -> int:
        number = len(self.nodes)
        self.nodes.append((collective, step, time))
        self.paths.extend(
            (number, before, *path[:-1], path.work & _ALL_BITS) for before, path in paths.items()
        )
        return number


_START: Final = _Path(0, 0, 0, 0, 0)
_ALL_BITS: Final = (1 << 64) - 1


def _later(paths: _Paths, time: int) -> _Paths:
    """Returns paths that are longer by a time in ns, in which nothing known works."""
    if not time:
        return paths
    return {before: path._replace(time=path.time + time) for before, path in paths.items()}


def _worked(paths: _Paths, time: int) -> _Paths:
    """Returns paths that are longer by a time in ns that the host takes."""
    if not time:
        return paths
    return {
        before: path._replace(time=path.time + time, host_time=path.host_time + time)
        for before, path in paths.items()
    }


def _computed(paths: _Paths, time: int, computed: int, usual: int, work: int) -> _Paths:
    """Returns paths that are longer by a time in ns, in part of which the host computes.

    Operators on a host count as work of a device: `computed` and `usual` in ns, and `work`.
    """
    if not computed:
        return _worked(paths, time)
    return {
        before: _Path(
            path.time + time,
            path.device_time + computed,
            path.usual_device_time + usual,
            path.host_time + time - computed,
            hash((path.work, work)),
        )
        for before, path in paths.items()
    }


def _longest(every: list[_Paths]) -> _Paths:
    """Returns the longest of all paths from each node."""
    found = dict(every[0])
    for paths in every[1:]:
        for before, path in paths.items():
            if before not in found or path.time > found[before].time:
                found[before] = path
    return found
