"""Whether a recording can be trusted: one module for each thing that can be wrong with it.

Every module has functions from a `Recording` to `Check`s.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from selftime.analysis.health.checks import Check, Verdict, severity
from selftime.analysis.health.content import (
    communication,
    content,
    file,
    memory,
    operators,
    unrecorded,
)
from selftime.analysis.health.identity import described, job, ranks, twice, zero
from selftime.analysis.health.launches import (
    devices,
    launches,
    links,
    lost_end,
    lost_streams,
    overlap,
)
from selftime.analysis.health.recorder import dropped, flags, own_overhead, own_time, partial, waits
from selftime.analysis.health.recording import Recording
from selftime.analysis.health.replays import replays
from selftime.analysis.health.stepwise import steps, steps_without_work
from selftime.analysis.health.times import clocks, durations, past_the_end, timeless, unended, zeros
from selftime.trace import Trace

__all__ = ["Check", "Recording", "Verdict", "checked"]

_Look: TypeAlias = Callable[[Recording], Iterator[Check]]

_CHECKS: Final[tuple[_Look, ...]] = (
    content,
    file,
    dropped,
    partial,
    launches,
    lost_end,
    lost_streams,
    devices,
    replays,
    links,
    operators,
    unrecorded,
    ranks,
    twice,
    clocks,
    durations,
    zeros,
    timeless,
    unended,
    past_the_end,
    overlap,
    steps,
    steps_without_work,
    communication,
    memory,
    described,
    job,
    zero,
    own_overhead,
    own_time,
    flags,
    waits,
)


def checked(trace: Trace) -> list[Check]:
    """Every check of a trace that found something, or that says that all is well; worst first."""
    recording = Recording(trace)
    found = [check for look in _CHECKS for check in look(recording)]
    return sorted(found, key=lambda check: severity(check.verdict), reverse=True)
