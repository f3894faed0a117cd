"""What a fix saves, by the replay of the program with what it changes."""

from dataclasses import replace
from typing import Final

from selftime.advice.base import Saving
from selftime.advice.gate import Gate
from selftime.advice.replay import Change, Unwait, replay_of
from selftime.trace import Trace

ERROR: Final = 0.25
"""Relative error of an estimate: a first interval, until a corpus of repaired programs gives it."""


def priced(trace: Trace, limits: Gate, *changes: Change, most: tuple[Change, ...] = ()) -> Saving:
    """The saving of these changes in a typical step of this trace.

    `most` are the changes of a fix that leaves nothing of the cost; without them nothing is left of
    what the changes shorten.
    """
    replay = replay_of(trace)
    estimate = limits.typical(replay.saving(*changes) / 1e6)
    upper = limits.typical(replay.saving(*(most or map(_whole, changes))) / 1e6)
    upper = min(max(upper, estimate), limits.step_ms)
    estimate = min(estimate, upper)
    return Saving.of_step(
        limits.step_ms,
        estimate,
        method="replay",
        low_ms=(1 - ERROR) * estimate,
        high_ms=min((1 + ERROR) * estimate, upper),
        upper_ms=upper,
    )


def _whole(change: Change) -> Change:
    """The change that leaves nothing."""
    return change if isinstance(change, Unwait) else replace(change, keep=0.0)
