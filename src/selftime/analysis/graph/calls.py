"""The host calls of the dependency graph: launches, waits and collectives, in order of time."""

from dataclasses import dataclass, fields

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.graph.serial_threads import SerialThreads, host_states, serial_threads
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.ranks.collectives import collectives_of_trace
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Flags, Ints
from selftime.intervals import order_by_start_and_end
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

(
    _SORT_KEY_OF_HANDOVERS,
    _SORT_KEY_OF_THREAD_STARTS,
    _SORT_KEY_OF_THREAD_RESUMES,
    _SORT_KEY_OF_RECORDED_CALLS,
) = (
    -4,
    -3,
    -2,
    -1,
)
"""Sort keys that order calls beginning at the same instant. The end of a step has the index of the
step as its key.
"""


@dataclass(frozen=True, slots=True)
class HostCallNodes:
    """Host calls of a dependency graph, in order of begin; arrays of shape (n,), times in ns."""

    id: Ints
    """The slice id of the call; -1 for added instants, such as the end of a step."""
    thread: Ints
    """The number of the call's host thread; threads that take turns share one number."""
    start: Ints
    end: Ints
    order: Ints
    """The sort key of calls that begin and end at the same instants; for the end of a step, the
    index of the step.
    """
    awaited_call: Ints
    """The index of the call on another host thread that this call waits for, or -1 if there is
    none.
    """
    lag_after_awaited_call: Ints
    """Time in ns from the end of `awaited_call` to the begin of this call."""
    idle_since: Ints
    """When the call's thread ran out of work before the call, in ns; the start of the call if the
    thread was not idle.
    """
    is_collective: Flags
    """Whether the call is a collective that runs on the host."""

    @property
    def step(self) -> Ints:
        """The index of the step that each call ends, or -1 if it ends none."""
        return np.where(self.order > _SORT_KEY_OF_RECORDED_CALLS, self.order, NO_SLICE)


def host_call_nodes(trace: Trace, launch_ids: pl.Series) -> HostCallNodes:
    """Returns the host calls of a trace as nodes of the dependency graph.

    Args:
        trace: The trace.
        launch_ids: The slices that launched work; may contain nulls.
    """
    threads = serial_threads(trace)
    called = _nodes_of_recorded_calls(trace, threads, launch_ids.drop_nulls().to_numpy())
    main = max(threads.main_thread, 0)
    steps = steps_with_counted_flags(trace)["end"].to_numpy()
    ends = _zero_length_call_nodes(steps, np.full(steps.size, main), np.arange(steps.size))
    collectives = np.flatnonzero(called.is_collective)
    resumes = _nodes_of_main_thread_resumes(trace, called, collectives, threads.main_thread)
    acting = np.isin(called.id, launch_ids.drop_nulls().to_numpy())
    acting |= np.isin(called.id, host_waits(trace)["id"].to_numpy())
    acting[collectives] = True
    leaves, starts = _nodes_of_thread_handovers(threads, called, np.flatnonzero(acting))
    first = called.id.size + ends.id.size
    return _sorted_calls_of_tables(
        called,
        ends,
        resumes,
        leaves,
        _thread_starts_with_handovers(starts, first + resumes.id.size),
    )


def _nodes_of_recorded_calls(
    trace: Trace, threads: SerialThreads, launch_ids: Ints
) -> HostCallNodes:
    """Returns nodes of all runtime calls, host collectives, and other slices that launched work."""
    host = slices_on(trace, "host")
    chosen = np.zeros(trace.slices.height, bool)
    chosen[launch_ids] = True
    ended = host["duration"].is_not_null()
    calls = host["category"].is_in(list(names.RUNTIME_CALL_CATEGORIES)) & ended
    chosen[_host_collective_ids(trace)] = True
    host = host.filter(calls | pl.Series(chosen[host["id"].to_numpy()]))
    thread = trace.tracks["thread"].gather(host["track"]).cast(pl.Int64).to_numpy()
    start = host["start"].to_numpy()
    number = np.maximum(np.append(threads.number_by_thread, NO_SLICE)[thread], 0)
    ids = host["id"].cast(pl.Int64).to_numpy()
    return HostCallNodes(
        id=ids,
        thread=_with_threads_of_messages(trace, threads, ids, number),
        start=start,
        end=start + host["duration"].fill_null(0).to_numpy(),
        order=np.full(start.size, _SORT_KEY_OF_RECORDED_CALLS),
        awaited_call=np.full(start.size, NO_SLICE),
        lag_after_awaited_call=np.zeros(start.size, np.int64),
        idle_since=start,
        is_collective=np.isin(host["id"].to_numpy(), _host_collective_ids(trace)),
    )


def _with_threads_of_messages(
    trace: Trace, threads: SerialThreads, call_ids: Ints, number: Ints
) -> Ints:
    """Returns the threads of calls, where messages in flight at once have threads of their own.

    A message is recorded on the thread that begins it, which goes on without it.
    """
    is_message = pl.col("collective").is_in(["send", "recv"]) & pl.col("is_host")
    messages = collectives_of_trace(trace).filter(is_message).sort("start", "end")
    free_from: list[int] = []
    thread_of_message = {}
    for id_, start, end in messages.select("id", "start", "end").iter_rows():
        own = next((at for at, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[own : own + 1] = [end]
        thread_of_message[id_] = own
    first = int(threads.number_by_thread.max(initial=0)) + 1
    moved = [thread_of_message.get(id_, NO_SLICE) for id_ in call_ids.tolist()]
    lane = np.array(moved, np.int64).reshape(call_ids.shape)
    return np.where(lane == NO_SLICE, number, first + lane)


def _host_collective_ids(trace: Trace) -> Ints:
    """Returns the slice ids of collectives that run on the host and last longer than 0 ns."""
    found = collectives_of_trace(trace).filter("is_host", pl.col("end") > pl.col("start"))
    return np.asarray(found["id"].cast(pl.Int64).to_numpy())


def _zero_length_call_nodes(
    instants: Ints, thread: Ints, order: Ints, idle_since: Ints | None = None
) -> HostCallNodes:
    """Returns one call node of length zero for each given instant (ns)."""
    return HostCallNodes(
        id=np.full(instants.size, NO_SLICE),
        thread=thread,
        start=instants,
        end=instants,
        order=order,
        awaited_call=np.full(instants.size, NO_SLICE),
        lag_after_awaited_call=np.zeros(instants.size, np.int64),
        idle_since=instants if idle_since is None else idle_since,
        is_collective=np.zeros(instants.size, bool),
    )


def _nodes_of_main_thread_resumes(
    trace: Trace, calls: HostCallNodes, host_collectives: Ints, main_number: int
) -> HostCallNodes:
    """Returns call nodes of length zero where the idle main thread resumes after a collective."""
    others = host_collectives[calls.thread[host_collectives] != main_number]
    if not others.size:
        return _zero_length_call_nodes(others, others, others)
    when = calls.end[others]
    states = host_states(trace).states(main_number)
    at = np.searchsorted(states.state_bounds, when, side="left") - 1
    works = (states.slice_id[at] != NO_SLICE) & (states.state_bounds[at + 1] > when)
    idle = np.flatnonzero(~works)
    since = np.where(states.slice_id[at] == NO_SLICE, states.state_bounds[at], when)[idle]
    points = _zero_length_call_nodes(
        when[idle],
        np.full(idle.size, main_number),
        np.full(idle.size, _SORT_KEY_OF_THREAD_RESUMES),
        since,
    )
    return _replace_call_columns(points, awaited_call=others[idle])


def _nodes_of_thread_handovers(
    threads: SerialThreads, calls: HostCallNodes, relevant_calls: Ints
) -> tuple[HostCallNodes, HostCallNodes]:
    """Returns zero-length nodes where the main thread hands work over, and where others begin it.

    Only handovers before calls that others depend on are included. If the main thread is within a
    call at that time, its instant is the begin of that call, and the lag is the time since then.
    """
    beside = relevant_calls[
        (calls.thread[relevant_calls] != threads.main_thread) & (threads.main_thread != NO_SLICE)
    ]
    thread, since = calls.thread[beside], calls.start[beside].copy()
    for number in np.unique(thread).tolist():
        own = thread == number
        since[own] = threads.busy_since_times(number, since[own])
    kinds = np.unique(np.column_stack([since, thread]), axis=0)
    when, thread = kinds[:, 0], kinds[:, 1]
    main = np.flatnonzero(calls.thread == threads.main_thread)
    main = main[np.argsort(calls.start[main], kind="stable")]
    at = np.searchsorted(calls.start[main], when, side="right") - 1
    around = main[np.maximum(at, 0)] if main.size else at
    left = when.copy()
    if main.size:
        inside = (at >= 0) & (calls.end[around] > when)
        left = np.where(inside, calls.start[around], when)
    leaves = _zero_length_call_nodes(
        left, np.full(when.size, threads.main_thread), np.full(when.size, _SORT_KEY_OF_HANDOVERS)
    )
    starts = _zero_length_call_nodes(when, thread, np.full(when.size, _SORT_KEY_OF_THREAD_STARTS))
    since_end = np.full(when.size, np.iinfo(np.int64).min)  # all earlier work was done
    return leaves, _replace_call_columns(
        starts, lag_after_awaited_call=when - left, idle_since=since_end
    )


def _thread_starts_with_handovers(
    thread_starts: HostCallNodes, first_handover: int
) -> HostCallNodes:
    """Returns thread starts whose `awaited_call` is the main thread's handover of their work."""
    return _replace_call_columns(
        thread_starts, awaited_call=first_handover + np.arange(thread_starts.id.size)
    )


def _replace_call_columns(nodes: HostCallNodes, **columns: Ints) -> HostCallNodes:
    return HostCallNodes(
        **{f.name: getattr(nodes, f.name) for f in fields(HostCallNodes)} | columns
    )


def _sorted_calls_of_tables(*tables: HostCallNodes) -> HostCallNodes:
    """Returns the calls of all tables in one table, in order of begin."""
    every = {
        f.name: np.concatenate([getattr(table, f.name) for table in tables])
        for f in fields(HostCallNodes)
    }
    order = order_by_start_and_end(every["start"], every["end"], every["order"])
    place = np.append(np.empty(order.size, np.int64), NO_SLICE)
    place[order] = np.arange(order.size)
    nodes = HostCallNodes(**{name: column[order] for name, column in every.items()})
    return _replace_call_columns(nodes, awaited_call=place[nodes.awaited_call])
