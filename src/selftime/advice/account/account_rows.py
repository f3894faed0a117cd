"""Defines the account of a step: rows of time that add up to it, each with a verdict."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from selftime.advice.rule_outcomes import Where

AccountVerdict: TypeAlias = Literal["finding", "needed", "small", "unexplained"]
AccountBasis: TypeAlias = Literal["unrecorded", "recorded"]

_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """Time of a step that was spent in one way, in one place, with what is known of it."""

    time_class: str = field(metadata={"json_key": "class"})
    """What the time was spent on: one of `TIME_CLASSES`."""
    ms: float
    """The time of the row in a step: ns as ms, so that rows add up to the nanosecond."""
    share: float
    """The row's time as a share of the step."""
    where: Where = field(default_factory=Where)
    """The source line; unknown if the row has several or none."""
    what: str | None = None
    """The optimizer, operator, frame or kernel that took most of the row's time."""
    verdict: AccountVerdict
    finding: str | None = None
    """The id of the finding that claims the time, if the verdict is `finding`."""
    at_most_ms: float | None = None
    """Most of the row's time that a fix could save, in ms; None if that is unknown."""
    text: str
    """Why the row has its verdict, and what would tell more if it is unexplained: a sentence."""

    @property
    def ns(self) -> int:
        """The time of the row in a step, in ns."""
        return round(self.ms * _NS_PER_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAccount:
    """What a step's time was spent on: the rows, largest first, add up to the step."""

    step_ms: float
    """The mean time of a counted step, in ms."""
    steps: int
    """The number of steps of which the account has the mean."""
    basis: AccountBasis
    """Whether the times are those of a step without recording, or as recorded."""
    bound_by: tuple[str, ...]
    """What bounds the step, largest first: classes of time, where `memory_bandwidth` and `compute`
    tell computing on a device apart."""
    rows: tuple[AccountRow, ...]
    found_ms: float
    """Time of the rows that findings claim, in ms."""
    needed_ms: float
    """Time of work that runs near what the machine can do, in ms."""
    small_ms: float
    """Time of rows that are too small to matter, in ms."""
    unexplained_ms: float
    """Time that no finding claims and no model explains, in ms."""

    def rows_with_verdict(self, verdict: AccountVerdict) -> tuple[AccountRow, ...]:
        """Returns the rows with one verdict, largest first."""
        return tuple(row for row in self.rows if row.verdict == verdict)


def time_of_rows_ms(rows: tuple[AccountRow, ...]) -> float:
    """Returns the time of several rows in ms, exact to the nanosecond."""
    return sum(row.ns for row in rows) / _NS_PER_MS
