"""Check a recording against limits: not slower than a baseline, within budgets.

Counts are exact: one more than before exceeds the limit. Times vary: one exceeds a baseline if it
is slower by more than chance and by more than allowed. One exceeds a budget if three quarters of
the steps do, since other load on a machine only makes steps longer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime.analysis.requirements import missing
from selftime.arrays import Floats as Values
from selftime.compare.baselines import Baseline
from selftime.compare.comparability import Comparability, property_differences
from selftime.compare.measures import MEASURES, Measure, measure_steps
from selftime.compare.noise import shift
from selftime.trace import Trace

State: TypeAlias = Literal["within", "better", "over", "unknown"]

STATUS: Final = {"within": 0, "over": 1, "unknown": 3}
"""Exit statuses of the command: within limits, over a limit, unknown."""
_LINES: Final = 3
"""The most source lines that are named for an exceeded measure."""
_FEWEST: Final = 3
"""The fewest steps for which times are judged."""
_COSTS: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "host_ms": ("lines", {"counted": True}, "self_cpu_time"),
    "device_ms": ("lines", {"counted": True}, "device_time"),
    "operators": ("operators", {"by": "line"}, "count"),
    "launches": ("launches", {"by": "line"}, "count"),
    "syncs": ("syncs", {"by": "line"}, "count"),
    "copies": ("copies", {"by": "line"}, "count"),
    "copied_bytes": ("copies", {"by": "line"}, "bytes"),
    "peak_bytes": ("memory_peak", {"by": "line"}, "bytes"),
}
"""For each measure: the view that splits it by source line, the view's options and column."""


@dataclass(frozen=True, slots=True)
class Line:
    """A source line that contributes to an exceeded measure."""

    file: str
    line: int
    function: str | None
    much: float
    """The line's amount in the view's unit, over all steps."""


@dataclass(frozen=True, slots=True)
class MeasureCheck:
    """One measure checked against one limit."""

    measure: str
    against: Literal["baseline", "budget"]
    state: State
    now: float | None
    """The value per step: the median of times, the maximum of counts."""
    limit: float | None
    """The baseline's value, or the budget."""
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    """Bounds of the 95 % interval of the difference of times."""
    why: str = ""
    """The reason if the state is unknown; else empty."""
    lines: tuple[Line, ...] = ()
    """The lines that contribute most, if the state is over."""


@dataclass(frozen=True, slots=True)
class Check:
    """All results of checking a recording."""

    source: str
    baseline: str | None
    checked: tuple[MeasureCheck, ...]
    notes: tuple[str, ...]
    """Differences between this recording and the baseline's, one sentence each."""

    @property
    def state(self) -> Literal["within", "over", "unknown"]:
        """The worst state of all measures; `unknown` if nothing was checked.

        It is `over` if any measure is, else `unknown` if any is, else `within`.
        """
        states = {checked.state for checked in self.checked}
        if "over" in states:
            return "over"
        return "unknown" if "unknown" in states or not states else "within"

    @property
    def status(self) -> int:
        return STATUS[self.state]


def check(
    trace: Trace,
    *,
    baseline: Baseline | None = None,
    budgets: Mapping[str, float] | None = None,
    max_regress: float = 0.05,
) -> Check:
    """Check a recording against a baseline, budgets, or both.

    Args:
        trace: The recording.
        baseline: The values that it must not exceed.
        budgets: The most that a step may take, by the name of a measure.
        max_regress: The allowed increase of times over the baseline, as a ratio.
    """
    own = measure_steps(trace)
    checked: list[MeasureCheck] = []
    notes: tuple[str, ...] = ()
    if baseline is not None:
        like = Comparability.of(trace)
        notes = tuple(property_differences(baseline.like, like))
        is_alike = baseline.like.devices == like.devices
        checked += _check_baseline(trace, own, baseline, max_regress, is_alike=is_alike)
    checked += [
        _check_budget(trace, own, MEASURES[name], limit) for name, limit in (budgets or {}).items()
    ]
    told = None if baseline is None else baseline.source
    return Check(trace.source, told, tuple(checked), notes)


def _check_baseline(
    trace: Trace,
    own: Mapping[str, Values],
    baseline: Baseline,
    max_regress: float,
    *,
    is_alike: bool,
) -> Iterator[MeasureCheck]:
    for name, before in baseline.measures.items():
        measure = MEASURES[name]
        after = own.get(name)
        if after is None:
            why = _reason_for_lack(trace, measure)
            yield MeasureCheck(
                name, "baseline", "unknown", None, _typical(measure, before), why=why
            )
        elif measure.is_exact:
            now, limit = _typical(measure, after), _typical(measure, before)
            state: State = "over" if now > limit else "better" if now < limit else "within"
            yield MeasureCheck(
                name,
                "baseline",
                state,
                now,
                limit,
                now - limit,
                lines=_lines_if_over(trace, name, state),
            )
        elif not is_alike:
            why = "the devices differ"
            yield MeasureCheck(name, "baseline", "unknown", _typical(measure, after), None, why=why)
        else:
            yield _check_time(trace, name, before, after, max_regress)


def _check_time(
    trace: Trace, name: str, before: Values, after: Values, max_regress: float
) -> MeasureCheck:
    found = shift(before, after)
    state: State = "within"
    if min(before.size, after.size) < _FEWEST or found.chance is None:
        why = f"{before.size} and {after.size} steps are too few to estimate variation"
        return MeasureCheck(name, "baseline", "unknown", found.after, found.before, why=why)
    if found.is_significant and found.difference > max_regress * found.before:
        state = "over"
    elif found.is_significant and found.difference < 0:
        state = "better"
    return MeasureCheck(
        name,
        "baseline",
        state,
        found.after,
        found.before,
        found.difference,
        found.low,
        found.high,
        lines=_lines_if_over(trace, name, state),
    )


def _check_budget(
    trace: Trace, own: Mapping[str, Values], measure: Measure, limit: float
) -> MeasureCheck:
    values = own.get(measure.name)
    if values is None:
        why = _reason_for_lack(trace, measure)
        return MeasureCheck(measure.name, "budget", "unknown", None, limit, why=why)
    now = _typical(measure, values)
    if measure.is_exact:
        least = now
    elif values.size < _FEWEST:
        why = f"{values.size} steps are too few to estimate variation"
        return MeasureCheck(measure.name, "budget", "unknown", now, limit, why=why)
    else:
        least = float(np.quantile(values, 0.25))
    state: State = "over" if least > limit else "within"
    lines = _lines_if_over(trace, measure.name, state)
    return MeasureCheck(measure.name, "budget", state, now, limit, now - limit, lines=lines)


def _typical(measure: Measure, values: Values) -> float:
    """Returns the maximum of counts, the median of times."""
    return float(values.max() if measure.is_exact else np.median(values))


def _reason_for_lack(trace: Trace, measure: Measure) -> str:
    lacks = missing(trace, ("steps", *measure.needs))
    return f"the recording lacks {lacks[0]}" if lacks else "the recording does not contain it"


def _lines_if_over(trace: Trace, name: str, state: State) -> tuple[Line, ...]:
    return contributing_lines(trace, name)[:_LINES] if state == "over" else ()


def contributing_lines(trace: Trace, name: str) -> tuple[Line, ...]:
    """Returns the lines that contribute to a measure, most first; empty if no view has it."""
    if name not in _COSTS:
        return ()
    view, options, column = _COSTS[name]
    table = trace.view(view, **options).select("file", "line", "function", much=column)
    known = (
        table.drop_nulls(["file", "line", "much"])
        .group_by("file", "line")
        .agg(pl.col("function").first(), pl.col("much").sum())
    )
    spent = known.filter(pl.col("much") > 0)
    most = spent.sort("much", "file", "line", descending=[True, False, False])
    return tuple(
        Line(file, line, function, float(much)) for file, line, function, much in most.rows()
    )
