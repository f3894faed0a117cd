"""What PyTorch's Flight Recorder tells of one rank: its collectives, in order, and their groups.

The format is that of torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 1 and 2. What a dump
does not tell is None, or empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

Sizes = tuple[tuple[int, ...], ...]
"""The shape of each tensor."""


class CallState(str, Enum):
    """How far a call of a collective, a send or a receive has come."""

    completed = "completed"
    ended = "ended"
    """It completed or failed: Gloo's dumps do not tell which."""
    timed_out = "timed_out"
    started = "started"
    """The device works on it."""
    scheduled = "scheduled"
    """The host has entered it; the device has not started it, or the backend does not tell."""

    @property
    def is_open(self) -> bool:
        """Returns whether the rank still waits in the call, or waited until it gave up."""
        return self not in {CallState.completed, CallState.ended}


class Place(NamedTuple):
    """A line of source code, and the function that it is in."""

    file: str
    line: int | None
    function: str | None


class Call(NamedTuple):
    """A rank's call of a collective, a send or a receive, as an entry of its dump tells it."""

    group: str
    """The name of the process group, such as `0`."""
    sequence: int
    """Number of the call among those of its group and kind, which all ranks count alike."""
    operation: str
    """What was called, such as `all_reduce`."""
    state: CallState
    is_point_to_point: bool = False
    backend: str = ""
    source: int | None = None
    """Of a send or a receive: the rank within the group that sends."""
    destination: int | None = None
    """Of a send or a receive: the rank within the group that receives."""
    input_sizes: Sizes = ()
    output_sizes: Sizes = ()
    input_dtypes: tuple[str, ...] = ()
    output_dtypes: tuple[str, ...] = ()
    created_ns: int | None = None
    """When the rank entered the call, in ns since the Unix epoch; so are the next two."""
    started_ns: int | None = None
    completed_ns: int | None = None
    timeout_ns: int | None = None
    place: Place | None = None
    """The user's innermost line on the stack that entered the call."""


@dataclass(frozen=True, slots=True)
class Group:
    """A process group as a dump tells it."""

    name: str
    description: str = ""
    """What the program calls it, such as `default_pg`; empty if it does not name it."""
    ranks: tuple[int, ...] = ()
    """The ranks in it, in their order; empty where the dump does not list them."""


@dataclass(frozen=True, slots=True)
class Dump:
    """The dump of one rank."""

    rank: int
    calls: tuple[Call, ...] = ()
    """What the ring buffer holds, oldest first."""
    groups: Mapping[str, Group] = field(default_factory=lambda: MappingProxyType({}))
    version: str = ""
    lost_calls: bool = False
    """Whether older calls were overwritten, so that one that is not here may have been made."""
    unread_entries: int = 0
    source: str = ""
    """The path of the file."""

    @property
    def latest_ns(self) -> int:
        """Returns the latest instant that the dump tells, in ns since the Unix epoch; 0 if none."""
        return max(
            (
                instant
                for call in self.calls
                for instant in (call.created_ns, call.started_ns, call.completed_ns)
                if instant is not None
            ),
            default=0,
        )


@dataclass(frozen=True, slots=True)
class LastSighting:
    """Where the ledger of a rank's run saw its thread of steps last."""

    rank: int
    place: Place | None
    part: str
    """The activity, such as `program` or `data_wait`."""
    began_ns: int
    """When the ledger was begun, in ns since the Unix epoch."""
    seen_ns: int
    """When the last stack was read, in ns since the Unix epoch; none is while a profiler works."""
    last_ns: int
    """When the ledger was written last, in ns since the Unix epoch."""
    standing_ns: int
    """How long the thread had been in that step, or outside of steps, by then."""
    status: str | None = None
    """How the process ended; None if the ledger tells no end."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class HangEvidence:
    """All that files tell of a job that hangs."""

    dumps: Mapping[int, Dump] = field(default_factory=lambda: MappingProxyType({}))
    sightings: Mapping[int, LastSighting] = field(default_factory=lambda: MappingProxyType({}))
    unread: tuple[tuple[str, str], ...] = ()
    """Path and reason of each file that could not be read, or was left out."""
    superseded: tuple[tuple[int, str], ...] = ()
    """Rank and path of each dump of a rank beside the one that tells most, which is judged."""
    other_files: int = 0
    """The number of files that are neither dumps nor ledgers."""

    @property
    def latest_ns(self) -> int:
        """Returns the latest instant that a file tells, in ns since the Unix epoch."""
        told = [dump.latest_ns for dump in self.dumps.values()]
        return max([*told, *(seen.last_ns for seen in self.sightings.values())], default=0)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Returns the ranks that left a dump or a ledger."""
        return tuple(sorted({*self.dumps, *self.sightings}))
