"""How far a process of a job has come, as its ledger tells while the process runs.

All instants are in ns since the Unix epoch, by the clock of the process's machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from selftime.array_types import Ints


class Activity(NamedTuple):
    """What a Python stack showed: the kind of activity, and the user's line."""

    part: str
    """Such as `program`, which is the user's own code, `imports` or `checkpoint`."""
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True)
class RecentSteps:
    """The latest steps of one kind that no profiler recorded, oldest first; times in ns."""

    duration: Ints
    before_backward: Ints
    """Time before the backward pass, with waits for data; 0 where no backward pass was seen."""
    backward: Ints
    """Time in the backward pass; 0 where none was seen."""
    passes: Ints
    """Number of backward passes; 0 or 1 for a step with one."""


def _no_steps() -> RecentSteps:
    none = np.empty(0, np.int64)
    return RecentSteps(none, none, none, none)


@dataclass(frozen=True, slots=True)
class RankProgress:
    """What the ledger of one process tells of it so far."""

    source: str
    """The path of the ledger."""
    rank: int | None
    """None if the process is in no job, or did not tell its rank."""
    process: int | None
    world_size: int | None
    """How many ranks its job has; None if the ledger does not tell it."""
    began_ns: int
    """When the process began."""
    seen_ns: int
    """The latest instant that the ledger tells anything of."""
    written_ns: int
    """When its file was changed last, by the clock of the file system."""
    steps: int = 0
    """Number of steps that have ended."""
    step_ends_ns: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """When each of the latest steps ended, oldest first."""
    recent: RecentSteps = field(default_factory=_no_steps)
    has_device: bool = False
    """Whether a device works on the steps, so that times of the host say little of the work."""
    activity: Activity | None = None
    """What the last stack showed; None before the first."""
    standing_ns: int = 0
    """For how long the segment that is in progress lasts, if that is a second or longer."""
    is_recording: bool = False
    """Whether a profiler records just now, so that the ledger does not grow."""
    samples: Mapping[Activity, int] = field(default_factory=lambda: MappingProxyType({}))
    """How many of the latest stacks of usual steps showed each activity."""
    status: str | None = None
    """How the process ended; None as long as the ledger tells no end."""
