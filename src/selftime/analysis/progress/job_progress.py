"""Judges how far the ranks of a running job are apart, and which of them still run.

Ledgers are written once a second, each at its own time. So ranks are compared at the latest instant
that the ledgers of all running ranks tell of, and not by the last line of each.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median_high
from typing import Final

import numpy as np

from selftime.analysis.progress.slow_ranks import SlowRanks, slow_ranks
from selftime.rank_progress import RankProgress

SILENT_NS: Final = 10_000_000_000
"""Time since the last change of its ledger after which a rank counts as not seen. A running process
writes each second, but while it keeps Python's lock."""

SILENT_RECORDING_NS: Final = 120_000_000_000
"""The same while a profiler records, when nothing is written; by default that ends after 60 s."""

_COMPARED_STEPS: Final = 16
"""Number of the latest steps of which it is looked at when each rank ended them."""


class State(str, Enum):
    """Whether a rank still runs, as far as its ledger tells."""

    runs = "runs"
    records = "records"
    """A profiler records: its ledger does not grow meanwhile."""
    silent = "silent"
    """Its ledger has not grown for a while: it stands still, or was killed."""
    gone = "gone"
    """Its process is not there any more, and told no end: it was killed."""
    ended = "ended"

    @property
    def is_over(self) -> bool:
        """Returns whether the process has ended."""
        return self in {State.gone, State.ended}

    @property
    def is_alive(self) -> bool:
        """Returns whether the process is known to run."""
        return self in {State.runs, State.records}


@dataclass(frozen=True, slots=True)
class RankState:
    """A rank beside the others of its job."""

    progress: RankProgress
    state: State
    unseen_ns: int
    """For how long its ledger has not grown."""
    step_ns: int | None
    """The median of its latest steps; None before the first usual one."""
    steps_ahead: int
    """By how many steps it is ahead of the median rank; negative behind it."""
    late_ns: int | None
    """How much later than the median rank it ended the latest steps that all have ended; None if
    there is none."""


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The ranks of a job, at one instant."""

    ranks: tuple[RankState, ...]
    slow: SlowRanks
    missing: tuple[int, ...]
    """Ranks of the job that have no ledger: they have not made a step."""

    @property
    def is_over(self) -> bool:
        """Returns whether all processes that were seen have ended."""
        return bool(self.ranks) and all(one.state.is_over for one in self.ranks)

    @property
    def world_size(self) -> int | None:
        """Returns how many ranks the job has; None if no ledger tells it."""
        told = [one.progress.world_size for one in self.ranks]
        return max((size for size in told if size is not None), default=None)


def job_progress(
    found: Sequence[RankProgress], now_ns: int, gone: Collection[int | None] = ()
) -> JobProgress:
    """Returns the ranks of a job beside each other.

    Args:
        found: What the ledger of each rank tells.
        now_ns: The present instant, in ns since the Unix epoch.
        gone: Numbers of those processes that are known not to run any more.
    """
    unseen = [max(0, now_ns - one.written_ns) for one in found]
    states = [_state(one, time, gone) for one, time in zip(found, unseen, strict=True)]
    steps = _steps_at_common_instant(found, states)
    alive = [count for count, state in zip(steps, states, strict=True) if state.is_alive]
    median = median_high(alive or steps) if steps else 0
    late = _lateness(found, states, steps)
    ranks = tuple(
        RankState(one, state, time, _step_ns(one), count - median, later)
        for one, state, time, count, later in zip(found, states, unseen, steps, late, strict=True)
    )
    return JobProgress(ranks, slow_ranks(found), _missing(found))


def _state(one: RankProgress, unseen_ns: int, gone: Collection[int | None]) -> State:
    if one.status is not None:
        return State.ended
    if one.process in gone:
        return State.gone
    if unseen_ns >= (SILENT_RECORDING_NS if one.is_recording else SILENT_NS):
        return State.silent
    return State.records if one.is_recording else State.runs


def _step_ns(one: RankProgress) -> int | None:
    return int(np.median(one.recent.duration)) if len(one.recent.duration) else None


def _steps_at_common_instant(found: Sequence[RankProgress], states: Sequence[State]) -> list[int]:
    """Returns the number of steps of each rank at the latest instant that all that run tell of."""
    running = [one.seen_ns for one, state in zip(found, states, strict=True) if state is State.runs]
    instant = min(running, default=None)
    return [
        one.steps if instant is None else one.steps - int((one.step_ends_ns > instant).sum())
        for one in found
    ]


def _lateness(
    found: Sequence[RankProgress], states: Sequence[State], steps: Sequence[int]
) -> list[int | None]:
    """Returns how much later than the median rank each ended the latest steps that all ended."""
    is_compared = [not state.is_over and state is not State.silent for state in states]
    if not any(is_compared):
        is_compared = [True] * len(states)
    last = min((count for count, is_in in zip(steps, is_compared, strict=True) if is_in), default=0)
    ends = {
        at: one.step_ends_ns[end - _COMPARED_STEPS : end]
        for at, (one, is_in) in enumerate(zip(found, is_compared, strict=True))
        if is_in and (end := len(one.step_ends_ns) - (one.steps - last)) >= _COMPARED_STEPS
    }
    if len(ends) < 2 or len(ends) < sum(is_compared):
        return [None] * len(found)
    table = np.stack(list(ends.values()))
    late = np.median(table - np.median(table, axis=0), axis=1)
    by_rank = dict(zip(ends, late, strict=True))
    return [int(by_rank[at]) if at in by_rank else None for at in range(len(found))]


def _missing(found: Sequence[RankProgress]) -> tuple[int, ...]:
    size = max((one.world_size or 0 for one in found), default=0)
    seen = {one.rank for one in found}
    return tuple(rank for rank in range(min(size, 1 << 20)) if rank not in seen)
