"""What is recorded of each operator, what that costs, and the profiler that records it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from torch.profiler import ProfilerAction

from selftime.capture.profiler.profile import Profile
from selftime.capture.recorder.run_options import RunOptions

STOP_PAUSE_NS_PER_EVENT: Final = 16_000
STOP_PAUSE_NS_PER_PLAIN_EVENT: Final = 7_000
"""Nanoseconds per event that the program is paused at the end of a recording, with and without
shapes: measured 14,100 to 21,500, and 4,000 to 6,700."""

PEAK_BYTES_PER_EVENT: Final = 6_000
PEAK_BYTES_PER_PLAIN_EVENT: Final = 2_500
"""Bytes of memory per event while a recording is stopped and written, with and without shapes:
measured 5,400 to 5,900, and 2,300 to 2,400."""

MAX_SHARE_OF_FREE_MEMORY: Final = 0.25
"""Share of the free memory that a recording may take."""

EVENTS_WITHOUT_MEMORY_LIMIT: Final = 1 << 40
"""The number of events that fit into memory where the free memory is unknown."""


@dataclass(frozen=True, slots=True)
class RecordedDetails:
    """What is recorded about each operator besides its name and times."""

    frames: bool
    """Python frames, from which the source lines come."""
    shapes: bool
    memory: bool

    @property
    def pause_ns_per_event(self) -> int:
        """Returns how long the program is paused for each event when the recording ends."""
        return STOP_PAUSE_NS_PER_EVENT if self.shapes else STOP_PAUSE_NS_PER_PLAIN_EVENT

    @property
    def peak_bytes_per_event(self) -> int:
        return PEAK_BYTES_PER_EVENT if self.shapes else PEAK_BYTES_PER_PLAIN_EVENT

    def events_in_memory(self, free_bytes: int | None) -> int:
        """Returns the number of events for which there is memory; `free_bytes` None is unknown."""
        if free_bytes is None:
            return EVENTS_WITHOUT_MEMORY_LIMIT
        return int(free_bytes * MAX_SHARE_OF_FREE_MEMORY) // self.peak_bytes_per_event

    def events_in_hold(self, options: RunOptions) -> int:
        """Returns the number of events whose pause is as long as `--hold`."""
        return max(1, int(options.hold * 1e9) // self.pause_ns_per_event)


def requested_details(options: RunOptions) -> RecordedDetails:
    return RecordedDetails(options.with_stack, options.record_shapes, options.profile_memory)


def new_profile(
    schedule: Callable[[int], ProfilerAction], details: RecordedDetails, packages: tuple[str, ...]
) -> Profile:
    """Returns a profiler that is not started, whose user did not ask for it.

    Args:
        schedule: What it does in each step.
        details: What it records of each operator.
        packages: Folders of installed packages that count as the user's code.
    """
    profile = Profile(
        schedule=schedule,
        record_shapes=details.shapes,
        profile_memory=details.memory,
        with_stack=details.frames,
    )
    profile.user_packages = packages
    profile.pitfalls.started_by_program = False
    return profile
