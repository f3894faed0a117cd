"""Defines claims: what a rule says that a fix removes or saves, from which savings are computed.

A claim is in milliseconds of the step as recorded. `saving_from_claim.py` makes the saving of it.
"""

from dataclasses import KW_ONLY, dataclass, replace
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
    worst_case_changes: tuple[Change, ...] = ()
    """Changes if the fix helps least; () computes the lower end from `interval` alone."""
    worst_case_share: float = 1.0
    """Share of the saving by `worst_case_changes` that is certain, 0 to 1."""
    best_case_changes: tuple[Change, ...] = ()
    """Changes if the fix helps best; () computes the upper end from `interval` alone."""
    largest_changes: tuple[Change, ...] = ()
    """Largest changes that any fix can make; () means that all time which `changes` shorten is
    removed."""
    interval: SavingRange = REPLAYED_SAVING_RANGE
    is_slowed: bool = True
    """Whether recording slows the work that the fix removes, so that the true saving is smaller."""
    noise_ms: float | None = None
    """Variation between steps of the time that the fix removes, in ms; None: the step times'
    variation."""
    added_ms: float = 0.0
    """Time in ms that the fix itself most likely adds to a step without profiler."""
    most_added_ms: float = 0.0
    """The same if the fix helps least: the lower end may then be a loss, below 0."""
    phase: str | None = None
    """Phase of the step, one of `PHASES` of the run's ledger, in which all lies that the fix can
    remove; None if it is in none or several."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelledClaim:
    """A claim of a saving that the rule computes itself, in ms per recorded step."""

    saved_ms: float
    max_saving_ms: float
    """Largest saving that any fix can reach, in ms; if `may_exceed_max`, the time that the rule
    measured."""
    _: KW_ONLY
    changes: tuple[Change, ...] = ()
    """Changes that the fix makes, to simulate all fixes together; () if unknown."""
    low_ms: float | None = None
    """Saving in ms if the fix helps least; None computes the lower end from `interval` alone."""
    low_share: float = 1.0
    """Share of the saving `low_ms` that is certain, 0 to 1."""
    high_ms: float | None = None
    """Saving in ms if the fix helps best; None computes the upper end from `interval` alone."""
    interval: SavingRange = REPLAYED_SAVING_RANGE
    step_ms: float | None = None
    """Duration in ms of the step that contains the saving; None means the typical step."""
    method: EstimateMethod = "replay"
    is_slowed: bool = True
    """Whether recording slows the work that the fix removes, so that the true saving is smaller."""
    may_exceed_max: bool = False
    """Whether the fix may save more than the measured `max_saving_ms`, within `interval`."""
    noise_ms: float | None = None
    """Variation between steps of the time that the fix removes, in ms; None: the step times'
    variation."""

    def part(self, share: float, changes: tuple[Change, ...]) -> "ModelledClaim":
        """Returns the claim of a fix that makes some of the changes, for a share of the saving."""
        return replace(
            self,
            saved_ms=share * self.saved_ms,
            max_saving_ms=share * self.max_saving_ms,
            low_ms=None if self.low_ms is None else share * self.low_ms,
            high_ms=None if self.high_ms is None else share * self.high_ms,
            changes=changes,
        )


@dataclass(frozen=True, slots=True, eq=False)
class UpperBoundClaim:
    """A claim that only limits the saving of a fix from above, without an estimate."""

    max_saving_ms: float
    """Largest saving of the fix, in ms per recorded step."""
    is_slowed: bool = True
    """Whether recording slows the work that the fix removes, so that the true saving is smaller."""
    removing_changes: tuple[Change, ...] = ()
    """Changes that would remove all of that time, to simulate what other fixes leave of it; () if
    unknown."""


@dataclass(frozen=True, slots=True)
class ComputedSavingClaim:
    """A saving in a step without profiler, already computed by a rule of another package."""

    saving: Saving
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class RunClaim:
    """A claim of time that a fix removes from the whole run, as its ledger records it, in ns."""

    max_saving_ns: int
    """Largest saving of the fix, in ns."""
    _: KW_ONLY
    saved_ns: int | None = None
    """Saving that is expected, in ns; None if only the largest is known."""
    low_ns: int = 0
    """Saving if the fix helps least, in ns."""
    high_ns: int | None = None
    """Saving if the fix helps best, in ns; None means `max_saving_ns`."""
    noise_ns: int = 0
    """Error of these times in ns, which comes from reading stacks only every 10 ms or so."""


SavingClaim: TypeAlias = (
    RemovalClaim | ModelledClaim | UpperBoundClaim | ComputedSavingClaim | RunClaim
)


def changes_of_claim(claim: SavingClaim) -> tuple[Change, ...]:
    """Returns the changes that the claimed fix most likely makes; () if unknown."""
    return () if isinstance(claim, UpperBoundClaim | RunClaim) else claim.changes


def largest_changes_of_claim(claim: SavingClaim) -> tuple[Change, ...]:
    """Returns the largest changes that the claimed fix can make; () if unknown."""
    if isinstance(claim, RemovalClaim):
        return (*claim.changes, *claim.best_case_changes, *claim.largest_changes)
    if isinstance(claim, UpperBoundClaim):
        return claim.removing_changes
    return changes_of_claim(claim)
