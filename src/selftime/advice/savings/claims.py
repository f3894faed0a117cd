"""Defines claims: what a rule says that a fix removes or saves, from which savings are computed.

A claim is in milliseconds of the step as recorded. `saving_from_claim.py` makes the saving of it.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Final, TypeAlias

from selftime.advice.replay import Change
from selftime.advice.savings.saving import EstimateMethod, Saving

REPLAY_ERROR_SHARE: Final = 0.25
"""Assumed relative error of a simulated saving, as long as no larger error was measured."""


@dataclass(frozen=True, slots=True)
class SavingRange:
    """Interval that should contain the true saving, as multiples of the estimated saving."""

    low: float
    """Lower end, as a multiple of the estimate; 0 if the fix may save nothing."""
    high: float | None
    """Upper end, as a multiple of the estimate; None if only the upper bound limits it."""


REPLAYED_SAVING_RANGE: Final = SavingRange(1 - REPLAY_ERROR_SHARE, 1 + REPLAY_ERROR_SHARE)
"""Interval for a simulated saving of measured times, if the fix certainly helps."""
UNSURE_SAVING_RANGE: Final = SavingRange(0.0, 1 + REPLAY_ERROR_SHARE)
"""Interval for a simulated saving of measured times, if the fix may not help at all."""


@dataclass(frozen=True, slots=True, eq=False)
class RemovalClaim:
    """A claim of which work a fix removes or shortens; a simulation computes the saving."""

    changes: tuple[Change, ...]
    """Changes to the recorded program that the fix most likely makes."""
    _: KW_ONLY
    low: tuple[Change, ...] = ()
    """Changes if the fix helps least; () computes the lower end from `interval` alone."""
    low_share: float = 1.0
    """Share of the saving by `low` that is certain, 0 to 1."""
    high: tuple[Change, ...] = ()
    """Changes if the fix helps best; () computes the upper end from `interval` alone."""
    limit: tuple[Change, ...] = ()
    """Largest changes that any fix can make; () means that all time which `changes` shorten is
    removed."""
    interval: SavingRange = REPLAYED_SAVING_RANGE
    is_slowed: bool = True
    """Whether recording slows the work that the fix removes, so that the true saving is smaller."""
    noise_ms: float | None = None
    """Variation between steps of the time that the fix removes, in ms; None: the step times'
    variation."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelledClaim:
    """A claim of a saving that the rule computes itself, in ms per recorded step."""

    saved: float
    limit: float
    """Largest saving that any fix can reach, in ms; if `may_exceed`, the time that the rule
    measured."""
    _: KW_ONLY
    changes: tuple[Change, ...] = ()
    """Changes that the fix makes, to simulate all fixes together; () if unknown."""
    low: float | None = None
    """Saving in ms if the fix helps least; None computes the lower end from `interval` alone."""
    low_share: float = 1.0
    """Share of the saving `low` that is certain, 0 to 1."""
    high: float | None = None
    """Saving in ms if the fix helps best; None computes the upper end from `interval` alone."""
    interval: SavingRange = REPLAYED_SAVING_RANGE
    step: float | None = None
    """Duration in ms of the step that contains the saving; None means the typical step."""
    method: EstimateMethod = "replay"
    is_slowed: bool = True
    """Whether recording slows the work that the fix removes, so that the true saving is smaller."""
    may_exceed: bool = False
    """Whether the fix may save more than the measured time `limit`, within `interval`."""
    noise_ms: float | None = None
    """Variation between steps of the time that the fix removes, in ms; None: the step times'
    variation."""


@dataclass(frozen=True, slots=True)
class UpperBoundClaim:
    """A claim that only limits the saving of a fix from above, without an estimate."""

    limit: float
    """Largest saving of the fix, in ms per recorded step."""
    is_slowed: bool = True
    """Whether recording slows the work that the fix removes, so that the true saving is smaller."""


@dataclass(frozen=True, slots=True)
class ComputedSavingClaim:
    """A saving in a step without profiler, already computed by a rule of another package."""

    saving: Saving
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class RunClaim:
    """A claim of time that a fix removes from the whole run, as its ledger records it, in ns."""

    limit: int
    """Largest saving of the fix, in ns."""
    _: KW_ONLY
    saved: int | None = None
    """Saving that is expected, in ns; None if only the most is known."""
    low: int = 0
    """Saving if the fix helps least, in ns."""
    high: int | None = None
    """Saving if the fix helps best, in ns; None means `limit`."""
    noise: int = 0
    """How far the numbers may be off, since stacks are read some 10 ms apart, in ns."""


SavingClaim: TypeAlias = (
    RemovalClaim | ModelledClaim | UpperBoundClaim | ComputedSavingClaim | RunClaim
)


def changes_of_claim(claim: SavingClaim) -> tuple[Change, ...]:
    """Returns the changes that the claimed fix most likely makes; () if unknown."""
    return () if isinstance(claim, UpperBoundClaim | RunClaim) else claim.changes


def largest_changes_of_claim(claim: SavingClaim) -> tuple[Change, ...]:
    """Returns the largest changes that the claimed fix can make; () if unknown."""
    if isinstance(claim, RemovalClaim):
        return (*claim.changes, *claim.high, *claim.limit)
    return changes_of_claim(claim)
