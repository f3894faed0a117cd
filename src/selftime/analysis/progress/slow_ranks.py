"""Tells from ledgers which ranks of a job are slow by their own work, and where it cannot be told.

Ranks that exchange gradients end each step together, however slow one of them is. What differs is
where in the step their time goes: the slow rank works longer, and the others wait for it. Gradients
are exchanged once the backward pass has begun. So a rank that takes longer before it, and less time
within it than the others, is slow by its own work; the others wait in the backward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime.array_types import Ints
from selftime.rank_progress import Activity, RankProgress

MIN_STEPS: Final = 5
"""Number of usual steps of a rank from which on it is compared."""
MIN_EXCESS_SHARE: Final = 0.05
"""Share of a step by which a rank must be slower."""
MIN_EXCESS_NS: Final = 500_000
_SAME_DURATION_SHARE: Final = 0.1
"""Share by which the steps of ranks that end them together may differ."""
_MIN_OFFSET_SHARE: Final = 0.5
"""Share of a rank's excess by which the backward pass of the others must be longer than its."""


@dataclass(frozen=True, slots=True)
class SlowRank:
    """A rank that is slower than the others by its own work."""

    rank: int | None
    process: int | None
    excess_ns: int
    """By how much longer it works in a step than the rank that is compared with."""
    activity: Activity | None
    """The line at which it is more often than that rank; None if no line stands out."""


@dataclass(frozen=True, slots=True)
class SlowRanks:
    """The slow ranks of a job, the slowest first, or why it cannot be told which are slow."""

    ranks: tuple[SlowRank, ...] = ()
    cannot_tell: str | None = None


def slow_ranks(found: Sequence[RankProgress]) -> SlowRanks:
    """Returns which ranks are slow by their own work, judged by the latest usual steps of each."""
    compared = [one for one in found if len(one.recent.duration) >= MIN_STEPS]
    if len(compared) < 2:
        return SlowRanks(cannot_tell="fewer than two ranks have made enough usual steps")
    durations = [one.recent.duration for one in compared]
    medians = np.array([np.median(one) for one in durations])
    if medians.max() > (1 + _SAME_DURATION_SHARE) * medians.min():
        return SlowRanks(_slower(compared, durations))  # they do not wait for each other
    if any(one.has_device for one in compared):
        why = "a device does the work, of which the host's times tell little"
    elif any(not one.recent.backward.all() for one in compared):
        why = "some steps have no backward pass"
    elif any((one.recent.passes > 1).any() for one in compared):
        why = "steps have several backward passes, and ranks may wait for each other before one"
    else:
        slower = _slower(compared, [one.recent.before_backward for one in compared])
        return SlowRanks(tuple(one for one in slower if _do_others_wait(one, compared)))
    return SlowRanks(cannot_tell=why)


def _slower(compared: Sequence[RankProgress], times: Sequence[Ints]) -> tuple[SlowRank, ...]:
    """Returns the ranks whose times are longer than those of the median rank, beyond chance.

    Of an even number of ranks the faster one of the middle is compared with. The middle halves of
    both ranks' times must be apart.
    """
    quartiles = np.array([np.percentile(time, (25, 50, 75)) for time in times])
    usual = int(np.argsort(quartiles[:, 1], kind="stable")[(len(compared) - 1) // 2])
    step_ns = float(np.median(compared[usual].recent.duration))
    least = max(MIN_EXCESS_NS, MIN_EXCESS_SHARE * step_ns)
    slow = []
    for one, (low, middle, _) in zip(compared, quartiles, strict=True):
        excess = middle - quartiles[usual, 1]
        if excess >= least and low > quartiles[usual, 2]:
            activity = _activity_of_excess(one, compared[usual])
            slow.append(SlowRank(one.rank, one.process, int(excess), activity))
    return tuple(sorted(slow, key=lambda one: -one.excess_ns))


def _do_others_wait(slow: SlowRank, compared: Sequence[RankProgress]) -> bool:
    """Returns whether the backward passes of most ranks are longer than that of a slow one."""
    own = next(
        float(np.median(one.recent.backward))
        for one in compared
        if (one.rank, one.process) == (slow.rank, slow.process)
    )
    others = sorted(float(np.median(one.recent.backward)) for one in compared)
    return others[len(others) // 2] - own >= _MIN_OFFSET_SHARE * slow.excess_ns


def _activity_of_excess(slow: RankProgress, usual: RankProgress) -> Activity | None:
    """Returns the line at which the slow rank is more often than the other."""
    total, others = sum(slow.samples.values()), sum(usual.samples.values())
    if not total or not others:
        return None
    shares = {
        activity: count / total - usual.samples.get(activity, 0) / others
        for activity, count in slow.samples.items()
        if activity.file is not None
    }
    most = max(shares, key=lambda one: shares[one], default=None)
    return most if most is not None and shares[most] > 2 * MIN_EXCESS_SHARE else None
