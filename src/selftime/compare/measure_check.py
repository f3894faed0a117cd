"""The result of holding one measure against its limit."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

CheckState: TypeAlias = Literal["within", "better", "over", "unknown"]
"""Whether a measure is within its limit, below that of a baseline, over it, or cannot be judged."""


@dataclass(frozen=True, slots=True)
class ContributingLine:
    """A source line that contributes to a measure above its limit, and how much."""

    file: str
    line: int
    function: str | None
    much: float
    """Amount of the line, summed over the steps, in the unit of the view's column: ns, bytes or
    events."""


@dataclass(frozen=True, slots=True)
class MeasureCheck:
    """The result of checking one measure against a baseline or a budget."""

    measure: str
    against: Literal["baseline", "budget"]
    state: CheckState
    now: float | None
    """Value per step of the checked recording: median of a time, maximum of a count. Of a figure of
    the run, its value. None if unknown."""
    limit: float | None
    """The limit: the baseline's value, or the budget; None if unknown."""
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    """Upper bound of the 95 % interval of the time's difference (`low`: lower bound); None for
    counts."""
    why: str = ""
    """Reason why the state is `unknown`; an empty text for other states."""
    lines: tuple[ContributingLine, ...] = ()
    """Source lines with the largest amounts of a measure above its limit; else empty."""
