"""The calls of the dependency graph: what hosts launched, waited for and exchanged, in order."""

from dataclasses import dataclass, fields

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.graph.host_states import host_states_of
from selftime.analysis.graph.serial_threads import SerialThreads, serial_threads_of
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.ranks.collectives import collectives
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE
from selftime.trace import Trace

_LEAVES, _STARTS, _RESUMES, _CALL = -4, -3, -2, -1
"""How calls that begin together are ordered; ends of steps come last."""


@dataclass(frozen=True, slots=True)
class CallNodes:
    """Calls in order of begin; arrays of shape (n,), times in ns."""

    id: Ints
    """The slice, or NONE."""
    thread: Ints
    """The number of its serial thread."""
    start: Ints
    end: Ints
    order: Ints
    """Of what begins and ends together: what comes first; of an end of a step, its place."""
    partner: Ints
    """The call of another serial thread that it waits for, or NONE."""
    lag: Ints
    """How long after the end of its partner it begins."""
    idle_since: Ints
    """Since when its thread had nothing more to do before it; else its start."""
    is_collective: Flags
    """Whether it is a collective that the host makes."""

    @property
    def step(self) -> Ints:
        """The place of the step that ends here, else NONE."""
        return np.where(self.order > _CALL, self.order, NONE)


def call_nodes(trace: Trace, launches: pl.Series) -> CallNodes:
    """The calls of a trace's hosts.

    Args:
        trace: The trace.
        launches: The slices that launched work, nulls among them.
    """
    threads = serial_threads_of(trace)
    called = _calls(trace, threads, launches.drop_nulls().to_numpy())
    main = max(threads.main, 0)
    steps = assessed_steps(trace)["end"].to_numpy()
    ends = _points(steps, np.full(steps.size, main), np.arange(steps.size))
    exchanged = np.flatnonzero(called.is_collective)
    resumes = _resumes(trace, called, exchanged, threads.main)
    acting = np.isin(called.id, launches.drop_nulls().to_numpy())
    acting |= np.isin(called.id, host_waits(trace)["id"].to_numpy())
    acting[exchanged] = True
    leaves, starts = _handovers(threads, called, np.flatnonzero(acting))
    first = called.id.size + ends.id.size
    return _sorted(called, ends, resumes, leaves, _with_partners(starts, first + resumes.id.size))


def _calls(trace: Trace, threads: SerialThreads, launches: Ints) -> CallNodes:
    """Calls of the runtime, others that launch, and collectives of the host."""
    host = slices_on(trace, "host")
    chosen = np.zeros(trace.slices.height, bool)
    chosen[launches] = True
    ended = host["duration"].is_not_null()
    calls = host["category"].is_in(list(names.CALLS)) & ended
    chosen[_host_collectives(trace)] = True
    host = host.filter(calls | pl.Series(chosen[host["id"].to_numpy()]))
    thread = trace.tracks["thread"].gather(host["track"]).cast(pl.Int64).to_numpy()
    start = host["start"].to_numpy()
    number = np.maximum(np.append(threads.number, NONE)[thread], 0)
    return CallNodes(
        id=host["id"].cast(pl.Int64).to_numpy(),
        thread=number,
        start=start,
        end=start + host["duration"].fill_null(0).to_numpy(),
        order=np.full(start.size, _CALL),
        partner=np.full(start.size, NONE),
        lag=np.zeros(start.size, np.int64),
        idle_since=start,
        is_collective=np.isin(host["id"].to_numpy(), _host_collectives(trace)),
    )


def _host_collectives(trace: Trace) -> Ints:
    """The slices of collectives that hosts make, those without length left out."""
    found = collectives(trace).filter("is_host", pl.col("end") > pl.col("start"))
    return np.asarray(found["id"].cast(pl.Int64).to_numpy())


def _points(when: Ints, thread: Ints, order: Ints, idle_since: Ints | None = None) -> CallNodes:
    """Calls of no length."""
    return CallNodes(
        id=np.full(when.size, NONE),
        thread=thread,
        start=when,
        end=when,
        order=order,
        partner=np.full(when.size, NONE),
        lag=np.zeros(when.size, np.int64),
        idle_since=when if idle_since is None else idle_since,
        is_collective=np.zeros(when.size, bool),
    )


def _resumes(trace: Trace, called: CallNodes, exchanged: Ints, main: int) -> CallNodes:
    """Where the main thread goes on: at the end of a collective of another, if it was idle."""
    others = exchanged[called.thread[exchanged] != main]
    if not others.size:
        return _points(others, others, others)
    when = called.end[others]
    states = host_states_of(trace).states(main)
    at = np.searchsorted(states.edge, when, side="left") - 1
    works = (states.slice[at] != NONE) & (states.edge[at + 1] > when)
    idle = np.flatnonzero(~works)
    since = np.where(states.slice[at] == NONE, states.edge[at], when)[idle]
    points = _points(when[idle], np.full(idle.size, main), np.full(idle.size, _RESUMES), since)
    return _replaced(points, partner=others[idle])


def _handovers(
    threads: SerialThreads, called: CallNodes, acting: Ints
) -> tuple[CallNodes, CallNodes]:
    """Where a thread beside the main one begins to work, and where the main one is then.

    Only before calls that others depend on. The main thread may be within a call: the other one
    then begins so long after that began.
    """
    beside = acting[(called.thread[acting] != threads.main) & (threads.main != NONE)]
    thread, since = called.thread[beside], called.start[beside].copy()
    for number in np.unique(thread).tolist():
        own = thread == number
        since[own] = threads.busy_since(number, since[own])
    kinds = np.unique(np.column_stack([since, thread]), axis=0)
    when, thread = kinds[:, 0], kinds[:, 1]
    main = np.flatnonzero(called.thread == threads.main)
    main = main[np.argsort(called.start[main], kind="stable")]
    at = np.searchsorted(called.start[main], when, side="right") - 1
    around = main[np.maximum(at, 0)] if main.size else at
    left = when.copy()
    if main.size:
        inside = (at >= 0) & (called.end[around] > when)
        left = np.where(inside, called.start[around], when)
    leaves = _points(left, np.full(when.size, threads.main), np.full(when.size, _LEAVES))
    starts = _points(when, thread, np.full(when.size, _STARTS))
    since_end = np.full(when.size, np.iinfo(np.int64).min)  # whatever came before, it was done
    return leaves, _replaced(starts, lag=when - left, idle_since=since_end)


def _with_partners(starts: CallNodes, first: int) -> CallNodes:
    """Each with that from which the main thread's leave is so far behind it."""
    return _replaced(starts, partner=first + np.arange(starts.id.size))


def _replaced(nodes: CallNodes, **columns: Ints) -> CallNodes:
    return CallNodes(**{f.name: getattr(nodes, f.name) for f in fields(CallNodes)} | columns)


def _sorted(*tables: CallNodes) -> CallNodes:
    """All of them in order of begin; starts are nearly in order, and few are equal."""
    every = {
        f.name: np.concatenate([getattr(one, f.name) for one in tables]) for f in fields(CallNodes)
    }
    order = in_order(every["start"], every["end"], every["order"])
    place = np.append(np.empty(order.size, np.int64), NONE)
    place[order] = np.arange(order.size)
    nodes = CallNodes(**{name: column[order] for name, column in every.items()})
    return _replaced(nodes, partner=place[nodes.partner])


def in_order(start: Ints, end: Ints, rank: Ints) -> Ints:
    """The order by start, end and rank."""
    order = np.argsort(start, kind="stable")
    same = np.diff(start[order]) == 0
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[tied]
    order[tied] = rows[np.lexsort((rank[rows], end[rows], start[rows]))]
    return order
