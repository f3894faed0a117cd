"""Defines the account of a step: rows of time that add up to it, each with a verdict."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np

from selftime import names
from selftime.advice.rule_outcomes import Where
from selftime.analysis.account.device_times import DeviceTimes
from selftime.array_types import Ints
from selftime.intervals import Intervals, union

AccountVerdict: TypeAlias = Literal["finding", "needed", "small", "unexplained"]
AccountBasis: TypeAlias = Literal["unrecorded", "recorded"]

MAX_UNEXPLAINED_SHARE: Final = 0.2
"""Largest share of the step that may be unexplained where nothing is said to be worth a change."""

WORDS_OF_FORMAT: Final = {"capture": "compile", "host_compute": "compute"}
"""Names that `selftime.advice/1` promises for what is told apart here: a program captures a graph
once, to run it later, as it compiles a function."""

_NS_PER_MS: Final = 1_000_000
_RULE_ON_INITIALISATION: Final = "cold_start"


def _no_ids() -> Ints:
    return np.zeros(0, np.int64)


def _no_time() -> Intervals:
    return union([], [])


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """Time of a step that was spent in one way, in one place, with what is known of it."""

    time_class: str = field(metadata={"json_key": "class", "json_words": WORDS_OF_FORMAT})
    """What the time was spent on: one of `TIME_CLASSES`."""
    ms: float
    """The time of the row in a step: ns as ms, so that rows add up to the nanosecond."""
    share: float
    """The row's time as a share of the step."""
    where: Where = field(default_factory=Where)
    """The source line; unknown if the row has several or none."""
    called_at: Where = field(default_factory=Where)
    """The line that calls the row's function most, if that passes on the calls of several lines."""
    what: str | None = None
    """The optimizer, operator, frame or kernel that took at least half of the row's time."""
    places: int = 1
    """The number of lines or names that the row adds up: more than 1 for those that are small."""
    computes_on_host: bool = False
    """Whether the time is that of operators on the host, where the program uses a device, too."""
    verdict: AccountVerdict
    finding: str | None = None
    """The id of the finding that claims the time, if the verdict is `finding`."""
    at_most_ms: float | None = None
    """Most of the row's time that a fix could save, in ms: what it takes, if nothing bounds it more
    closely; None in an account that was not made of a trace."""
    text: str
    """Why the row has its verdict, and what would tell more if it is unexplained: a sentence."""
    slices: Ints = field(
        default_factory=_no_ids, compare=False, repr=False, metadata={"inner": True}
    )
    """Ids of the slices that the time was spent in, in all counted steps, ascending."""
    stretches: Intervals = field(
        default_factory=_no_time, compare=False, repr=False, metadata={"inner": True}
    )
    """The row's time in these steps that is of no slice, such as that before work begins."""

    @property
    def ns(self) -> int:
        """The time of the row in a step, in ns."""
        return round(self.ms * _NS_PER_MS)

    @property
    def is_initialisation(self) -> bool:
        """Whether a finding says that the program spends the time only once."""
        return (self.finding or "").partition("-")[0] == _RULE_ON_INITIALISATION


@dataclass(frozen=True, slots=True)
class AccountPart:
    """Time of all rows of one class, those of an optimizer apart."""

    time_class: str = field(metadata={"json_key": "class", "json_words": WORDS_OF_FORMAT})
    optimizer: str | None
    """The class of the optimizer whose step took the time; None for all other time."""
    ms: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAccount:
    """What a step's time was spent on: the rows, largest first, add up to the step."""

    step_ms: float
    """The mean time of a counted step, in ms."""
    steps: int
    """The number of steps of which the account has the mean."""
    basis: AccountBasis
    """Whether the times are those of a step without recording, or as recorded."""
    bound_by: tuple[str, ...] = field(metadata={"json_words": WORDS_OF_FORMAT})
    """What bounds the step, largest first: classes of time, where `memory_bandwidth`, `compute` and
    `host_compute` tell computing apart."""
    device: DeviceTimes | None = None
    """How long devices work in the step, beside the host or alone; None if unknown."""
    parts: tuple[AccountPart, ...]
    """The sums of the rows by class, largest first; they add up to the step as well."""
    rows: tuple[AccountRow, ...]
    found_ms: float
    """Time of the rows that findings claim, in ms."""
    needed_ms: float
    """Time of work that runs near what the machine can do, in ms."""
    small_ms: float
    """Time of rows that are too small to matter, in ms."""
    unexplained_ms: float
    """Time that no finding claims and no model explains, in ms."""
    kinds: tuple["KindAccount", ...] = ()
    """The accounts of the kinds of steps, that of most steps first; empty if all are alike."""

    @property
    def is_mostly_explained(self) -> bool:
        """Whether so little is unexplained that nothing may be said to be worth a change."""
        return self.unexplained_ms < MAX_UNEXPLAINED_SHARE * self.step_ms

    def rows_of_part(self, part: AccountPart) -> tuple[AccountRow, ...]:
        """Returns the rows that a part is the sum of, largest first."""
        key = (part.time_class, part.optimizer)
        return tuple(row for row in self.rows if (row.time_class, optimizer_of_row(row)) == key)

    def rows_with_verdict(self, verdict: AccountVerdict) -> tuple[AccountRow, ...]:
        """Returns the rows with one verdict, largest first."""
        return tuple(row for row in self.rows if row.verdict == verdict)


@dataclass(frozen=True, slots=True)
class KindAccount:
    """The account of the steps of one kind, such as training."""

    name: str
    account: StepAccount


def optimizer_of_row(row: AccountRow) -> str | None:
    """Returns the class of the optimizer whose step took a row's time; None for other rows."""
    if row.what is None or not names.is_optimizer_step(row.what):
        return None
    return names.optimizer_class(row.what)


def parts_of_rows(rows: tuple[AccountRow, ...]) -> tuple[AccountPart, ...]:
    """Returns the sums of the rows by class and optimizer, largest first."""
    sums: dict[tuple[str, str | None], int] = {}
    for row in rows:
        key = (row.time_class, optimizer_of_row(row))
        sums[key] = sums.get(key, 0) + row.ns
    whole = max(sum(sums.values()), 1)
    largest = sorted(sums, key=lambda key: -sums[key])
    return tuple(AccountPart(*key, sums[key] / _NS_PER_MS, sums[key] / whole) for key in largest)


def time_of_rows_ms(rows: tuple[AccountRow, ...]) -> float:
    """Returns the time of several rows in ms, exact to the nanosecond."""
    return sum(row.ns for row in rows) / _NS_PER_MS
