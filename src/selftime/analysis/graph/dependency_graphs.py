"""The dependency graph of a trace: host calls and device work, and what each had to wait for.

Its nodes are calls of the host, in order of begin, and work of devices, in launch order. A node
begins once everything that it depends on is done, each dependency with a lag of its own. Lags come
from the recording: the dependency that ended last has all of the remaining time as its lag; the
others have at most what is typical. So the graph reproduces the recorded times, and a change to any
node moves all nodes that depend on it.

A call depends on: the previous call on its serial thread (threads that take turns are one); device
work, a stream or all streams that it waits for; room in the queue of its stream; a call of another
serial thread. Device work depends on: its launch; the previous work on its stream; work of other
streams for which its stream had to wait.
"""

from dataclasses import dataclass
from typing import Final

from selftime.array_types import Flags, Ints

CODE_OF_ALL_STREAMS: Final = -2
"""Value of `GraphCalls.awaited_stream` for a call that waits for the work of all streams."""


@dataclass(frozen=True, slots=True)
class GraphCalls:
    """The host calls of a dependency graph in order of begin; arrays of shape (n,), times in ns.

    Calls of the runtime, collectives on the host, ends of steps, and instants at which serial
    threads meet. A call that waits returns at the later of its own time and its condition plus
    `delay_after_condition`: the condition is the end of `awaited_work`, of the last work of
    `awaited_stream`, or of `awaited_call`.
    """

    id: Ints
    """The slice id of the call; -1 for ends of steps and for instants at which a thread hands work
    to another.
    """
    thread: Ints
    """The number of the call's host thread; threads that take turns share one number."""
    start: Ints
    end: Ints
    host_time_before: Ints
    """Host time in ns since the previous call on the same thread; negative where the calls overlap.
    """
    own_time: Ints
    """Host time of the call in ns, without the time that it waited."""
    wait_slice: Ints
    """The slice that `host_waits` lists for this call's wait, perhaps an earlier call; the call's
    own slice if none.
    """
    awaited_work: Ints
    """The index of the device work for whose end the call waits; -1 if there is none."""
    awaited_stream: Ints
    """The number of the stream for whose launched work the call waits; `CODE_OF_ALL_STREAMS` for
    all streams, -1 if there is none.
    """
    awaited_call: Ints
    """The index of the call on another thread for whose end the call waits; -1 if there is none."""
    delay_after_condition: Ints
    """Time in ns from the end of what the call waits for to the call's end; negative if the call
    ended first.
    """
    is_condition_recorded: Flags
    """Whether the trace records what the call waits for. If not, it is inferred from when the call
    returned.
    """
    released_by: Ints
    """The index of the device work whose end let the call return; -1 if the call did not wait."""
    first_work: Ints
    """The index of the first device work that the call launched."""
    last_work: Ints
    """The end (exclusive) of the indexes, from `first_work`, of the device work that the call
    launched.
    """
    step: Ints
    """The index of the step that ends with this call, or -1 if it ends no step."""
    is_collective: Flags
    """Whether the call is a collective that runs on the host."""


@dataclass(frozen=True, slots=True)
class GraphDeviceWork:
    """The device work of a dependency graph, in launch order; arrays of shape (m,), times in ns.

    Work begins at the latest of these: its call's begin plus `launch_latency`, the end of its
    stream's previous work plus `gap_after_previous_work`, and for each of its `GraphStreamWaits`
    the end of the awaited work plus the wait's lag.
    """

    id: Ints
    stream: Ints
    """The number of the work's stream among the streams of all devices."""
    start: Ints
    end: Ints
    launch_latency: Ints
    """Least time in ns from the launch call's begin to the work's begin, by what was recorded."""
    gap_after_previous_work: Ints
    """Least time in ns from the end of the stream's previous work to the begin of this work."""


@dataclass(frozen=True, slots=True)
class GraphStreamWaits:
    """Waits of device work for work on another stream, sorted by the waiting work; shape (k,)."""

    work: Ints
    """The index of the device work that waits."""
    awaited_work: Ints
    """The index of the device work that must end first; it was launched earlier."""
    lag: Ints
    """Time from the end of `awaited_work` to the begin of `work`, in ns."""
    is_recorded: Flags
    """Whether the trace records the wait. If not, it is inferred from the times at which the two
    pieces of work ended and began.
    """


@dataclass(frozen=True, slots=True)
class LastDependenciesOfWork:
    """For each slice of device work, which of its dependencies ended last; arrays of shape (m,)."""

    link_code: Ints
    """The code, from `CODE_OF_SEGMENT_LINK`, of the type of the last dependency: launch, stream,
    event, inferred, or unknown.
    """
    awaited_work: Ints
    """The index of the device work that had to end first; -1 if the launch came last, or if
    unknown.
    """
    call: Ints
    """The index of the call that launched the work; -1 if unknown."""
    kind_code: Ints
    """The code of the work's kind, as in `path_segment_kinds.CODE_OF_SEGMENT_KIND`."""
    has_unknown_wait: Flags
    """Whether a call made the work's stream wait for something that the trace does not name."""


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """Host calls and device work of a trace, with the dependencies between them."""

    calls: GraphCalls
    work: GraphDeviceWork
    stream_waits: GraphStreamWaits
    last_dependencies: LastDependenciesOfWork
    begin: int
    """When the first call began, in ns."""
    thread_count: int
    """The number of host threads; threads that take turns count as one."""
    stream_count: int
    """The number of streams on all devices."""


PATH_SEGMENT_KINDS: Final = (
    "compute",
    "communication",
    "copy",
    "latency",
    "data",
    "gc",
    "host",
    "unknown",
)
"""Kinds of critical path segments: kernels; collectives; copies and fills; the time from a launch,
or from the end of earlier work, to the begin of device work; waits for data; garbage collection;
everything else that the host does; and waits of device work whose cause the trace does not record.
"""
CODE_OF_SEGMENT_KIND: Final = {kind: code for code, kind in enumerate(PATH_SEGMENT_KINDS)}
"""Maps the kind of a critical path segment to its code in arrays."""

SEGMENT_LINK_KINDS: Final = (
    "begin",
    "stream",
    "launch",
    "event",
    "inferred",
    "wait",
    "thread",
    "host",
    "unknown",
)
"""Why a critical path segment began: the recording began; the previous work of its stream ended; it
was launched; work of another stream ended, by a recorded event, or inferred from its end; device
work ended that the host waited for; another thread continued; its thread finished earlier work; or
unknown.
"""
CODE_OF_SEGMENT_LINK: Final = {link: code for code, link in enumerate(SEGMENT_LINK_KINDS)}
"""Maps the reason why a critical path segment began to its code in arrays."""

MAX_REACTION_AFTER_WAIT_NS: Final = 20_000
"""Longest normal delay, in ns, between the end of work and the begin of what waited for it. Kernels
of one stream are 1 us apart, a launch onto an idle stream takes 3 to 10 us, and the clocks of host
and device agree within a few us.
"""

TIME_BEFORE_RECORDING_NS: Final = -(1 << 62)
"""Time in ns before any trace; used for events that are not known to have happened.
"""
