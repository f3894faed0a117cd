"""Checks figures of a run against budgets, and holds what a check of any measure found.

What happens once in a run, such as its imports, was measured once: it is over a budget if it took
longer. Durations of steps vary, and are over a limit only where the interval of the figure is.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import polars as pl

from selftime.analysis.run.parts import run_parts
from selftime.compare.run_figures import RunMeasure, run_measure
from selftime.compare.statistical_significance import CONFIDENCE_LEVEL
from selftime.errors import UsageError
from selftime.run import Run

CheckState: TypeAlias = Literal["within", "better", "over", "unknown"]
"""Whether a measure is within its limit, below that of a baseline, over it, or cannot be judged."""


@dataclass(frozen=True, slots=True)
class ContributingLine:
    """A source line that contributes to a measure above its limit, and the amount it adds."""

    file: str
    line_number: int
    function: str | None
    amount: float
    """What the line adds to the measure, summed over the steps, in the unit of the view's column:
    ns, bytes or events."""


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


_MAX_LISTED_SOURCE_LINES: Final = 3
"""Most source lines listed for a part that exceeds its limit."""
_NO_LEDGER: Final = "the recording has no ledger of its run; record with `selftime run`"
_NO_END: Final = "the ledger has no end: the process was killed, or still runs"
_TOO_FEW: Final = "the steps are too few to estimate variation"


def check_run_against_budget(run: Run, name: str, limit: float) -> MeasureCheck:
    """Checks that a measure of a run is at most `limit`, which is in the measure's own unit.

    Raises:
        UsageError: There is no measure of this name.
    """
    measure = _measure_named(run, name)
    figure = measure.figure
    why = _why_unknown(run, measure)
    if figure is None or why:
        return _unknown(measure, limit, why)
    least = figure.whole
    if _has_known_variation(measure):
        interval = figure.interval(CONFIDENCE_LEVEL)
        if interval is None:
            return _unknown(measure, limit, _TOO_FEW)
        least = interval[0]
    state: CheckState = "over" if least > limit else "within"
    lines = _lines_of_part(run, measure) if state == "over" else ()
    apart = figure.whole - limit
    return MeasureCheck(name, "budget", state, figure.whole, limit, apart, lines=lines)


def _measure_named(run: Run, name: str) -> RunMeasure:
    measure = run_measure(run, name)
    if measure is None:
        raise UsageError(f"there is no measure `{name[:40]}`")
    return measure


def _has_known_variation(measure: RunMeasure) -> bool:
    """Returns whether the measure is of many steps, so that its variation can be estimated."""
    return measure.name.startswith("steps.") and measure.unit == "ns"


def why_run_measure_is_unknown(run: Run, name: str) -> str:
    """Returns why a run does not have a measure, or not all of it; empty if it has it."""
    return _why_unknown(run, _measure_named(run, name))


def _why_unknown(run: Run, measure: RunMeasure) -> str:
    """Returns why a measure of a run cannot be judged; empty if it can."""
    if not run.source:
        return _NO_LEDGER
    if measure.figure is None:
        return "the run has no steps of this kind"
    return "" if run.is_whole or _has_known_variation(measure) else _NO_END


def _unknown(measure: RunMeasure, limit: float, why: str) -> MeasureCheck:
    now = None if measure.figure is None else measure.figure.whole
    return MeasureCheck(measure.name, "budget", "unknown", now, limit, why=why)


def lines_of_run_measure(run: Run, name: str) -> tuple[ContributingLine, ...]:
    """Returns the lines on which most of a measure of a run was spent; () if unknown."""
    return _lines_of_part(run, _measure_named(run, name))


def _lines_of_part(run: Run, measure: RunMeasure) -> tuple[ContributingLine, ...]:
    """Returns the lines on which a part of the run was spent, the costliest first."""
    is_own = pl.lit(False) if measure.part is None else pl.col("part") == measure.part
    parts = run_parts(run).filter(is_own).drop_nulls(["file", "line"])
    rows = parts.select("file", "line", "function", pl.col("duration").cast(pl.Float64))
    return tuple(ContributingLine(*row) for row in rows.head(_MAX_LISTED_SOURCE_LINES).rows())
