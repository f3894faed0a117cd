"""The dependency graph of a trace: what its hosts and devices did, and what each had to wait for.

Its nodes are calls of the host, in order of begin, and work of devices, in order of launch. A node
begins once everything that it depends on is done, each dependency with a lag of its own. A lag is
what was observed: of the dependency that was over last, the whole rest of the time; of the others,
at most what is typical. So the graph gives back the recorded times, and what becomes faster or
slower in it moves all that depends on it.

The dependencies of a call: the call before it on its serial thread (threads that take turns are
one); device work, a stream or all streams that it waits for; room in the queue of its stream; a
call of another serial thread. Those of device work: its launch; the work before it on its stream;
work of other streams for which its stream was made to wait.
"""

from dataclasses import dataclass
from typing import Final

from selftime.arrays import Flags, Ints

ALL: Final = -2
"""A wait for the work of all streams."""


@dataclass(frozen=True, slots=True)
class Calls:
    """What hosts did, in order of begin; arrays of shape (n,), times in ns.

    Calls of the runtime, collectives that the host makes, ends of steps, and instants at which
    serial threads meet. A call that waits returns at the latest of its own time and its condition
    plus `after`: the condition is the end of `waits_for` (a work), of the last work of
    `waits_stream`, or of `waits_call` (a call).
    """

    id: Ints
    """The slice of the call; NONE for ends of steps and for meetings of threads."""
    thread: Ints
    """The number of its serial thread."""
    start: Ints
    end: Ints
    before: Ints
    """Host time since the call before it on its thread; negative where they overlap."""
    own: Ints
    """Host time of the call without its wait."""
    wait: Ints
    """The slice by which `host_waits` knows its wait, which may be that of a call before; else its
    own."""
    waits_for: Ints
    waits_stream: Ints
    waits_call: Ints
    after: Ints
    recorded: Flags
    """Whether the trace tells what it waits for; else that is inferred from when it returned."""
    held_by: Ints
    """The work whose end let it return in the recording; NONE if it did not have to wait."""
    first_work: Ints
    last_work: Ints
    """It launched the work `first_work:last_work`."""
    step: Ints
    """The place of the step that ends here, else NONE."""
    is_collective: Flags
    """Whether it is a collective that the host makes."""


@dataclass(frozen=True, slots=True)
class Work:
    """Work of devices in order of launch; arrays of shape (m,), times in ns.

    Work begins at the latest of its call's begin plus `latency`, the end of its stream's work plus
    `gap`, and the end of each work that it waits for by `StreamWaits` plus the lag of that.
    """

    id: Ints
    stream: Ints
    """The number of its stream among those of all devices."""
    start: Ints
    end: Ints
    latency: Ints
    gap: Ints


@dataclass(frozen=True, slots=True)
class StreamWaits:
    """Waits of work for work of other streams, in order of `work`; arrays of shape (k,)."""

    work: Ints
    """What waits."""
    needs: Ints
    """What it waits for: work that was launched before."""
    lag: Ints
    """Time from the end of that to its begin, in ns."""
    recorded: Flags
    """Whether the trace tells the wait; else it is inferred from when work ended and began."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """Which dependency of each work was over last; arrays of shape (m,)."""

    link: Ints
    """What it is, as in `segment_kinds.LINK`: launch, stream, event, inferred, or unknown."""
    source: Ints
    """The work that it leads to; NONE if it is the launch, or unknown."""
    call: Ints
    """The call that launched it; NONE if that is not known."""
    kind: Ints
    """The kind of the work, as in `segment_kinds.CODE`."""
    unexplained: Flags
    """Whether a call made its stream wait for what no record tells."""


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """Calls and work with their dependencies."""

    calls: Calls
    work: Work
    waits: StreamWaits
    bindings: Bindings
    begin: int
    """When the first call began."""
    threads: int
    """How many serial threads there are."""
    streams: int
    """How many streams there are, on all devices."""
