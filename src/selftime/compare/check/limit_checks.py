"""Checks a recording against limits: the values of an earlier recording, or budgets per step.

Counts are exact: one more than before exceeds the limit. Times vary: a time exceeds a baseline if
it is slower by more than chance and by more than allowed. A time exceeds a budget if three
quarters of the steps do, since other load on a machine only makes steps longer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.array_types import Floats as Values
from selftime.compare.amounts_per_step import step_windows
from selftime.compare.check.account_measures import ACCOUNT_MEASURES, time_class_of_measure
from selftime.compare.check.baseline_files import Baseline
from selftime.compare.check.run_checks import (
    CheckState,
    ContributingLine,
    MeasureCheck,
    check_run_against_baseline,
    check_run_against_budget,
)
from selftime.compare.check.step_measures import MEASURES, Measure, measure_steps
from selftime.compare.comparability import Comparability, property_differences
from selftime.compare.statistical_significance import median_shift
from selftime.trace import Trace

EXIT_STATUS_BY_CHECK_STATE: Final = {"within": 0, "over": 1, "unknown": 3}
"""Exit status of the command `selftime check` for each result of a check."""
_MAX_LISTED_SOURCE_LINES: Final = 3
"""Largest number of source lines that are listed for a measure above its limit."""
_MIN_STEPS_TO_CHECK_TIMES: Final = 3
"""Smallest number of steps a recording needs for its times to be compared with a limit."""
_VIEW_OPTIONS_AND_COLUMN_BY_MEASURE: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "host_ms": ("lines", {"counted": True}, "self_cpu_time"),
    "device_ms": ("lines", {"counted": True}, "device_time"),
    "operators": ("operators", {"by": "line"}, "count"),
    "launches": ("launches", {"by": "line"}, "count"),
    "syncs": ("syncs", {"by": "line"}, "count"),
    "copies": ("copies", {"by": "line"}, "count"),
    "copied_bytes": ("copies", {"by": "line"}, "bytes"),
    "peak_bytes": ("memory_peak", {"by": "line"}, "bytes"),
}
"""For each measure: the view, view options and column that give the amount of each source line."""


@dataclass(frozen=True, slots=True)
class RecordingCheck:
    """The results of checking a recording against a baseline and budgets."""

    source: str
    baseline: str | None
    checked: tuple[MeasureCheck, ...]
    notes: tuple[str, ...]
    """Differences between this recording and the baseline that make times hard to compare, as
    sentences."""

    @property
    def state(self) -> Literal["within", "over", "unknown"]:
        """Returns the worst state of any checked measure; `unknown` if nothing was checked.

        It is `over` if any measure is, else `unknown` if any is, else `within`.
        """
        states = {checked.state for checked in self.checked}
        if "over" in states:
            return "over"
        return "unknown" if "unknown" in states or not states else "within"

    @property
    def exit_status(self) -> int:
        """Returns the exit status of `selftime check`: 0 within, 1 over, 3 unknown."""
        return EXIT_STATUS_BY_CHECK_STATE[self.state]


def check_recording(
    trace: Trace,
    *,
    baseline: Baseline | None = None,
    budgets: Mapping[str, float] | None = None,
    max_regress: float = 0.05,
) -> RecordingCheck:
    """Checks a recording against a baseline, budgets, or both.

    Args:
        trace: The recording.
        baseline: The values that it must not exceed.
        budgets: The most that a step, or the run, may take, by the name of a measure.
        max_regress: The allowed increase of times over the baseline, as a ratio.
    """
    step_values = measure_steps(trace)
    checked: list[MeasureCheck] = []
    notes: tuple[str, ...] = ()
    if baseline is not None:
        like = Comparability.from_trace(trace)
        notes = tuple(property_differences(baseline.comparability, like))
        has_same_devices = baseline.comparability.devices == like.devices
        checked += _check_against_baseline(
            trace, step_values, baseline, max_regress, has_same_devices=has_same_devices
        )
        checked += [
            check_run_against_baseline(
                trace.run, name, before, max_regress, has_same_devices=has_same_devices
            )
            for name, before in baseline.run_measures.items()
        ]
    for name, limit in (budgets or {}).items():
        if name in MEASURES:
            checked.append(_check_against_budget(trace, step_values, MEASURES[name], limit))
        elif name in ACCOUNT_MEASURES:
            values = _account_values(trace, ACCOUNT_MEASURES[name])
            checked.append(_check_against_budget(trace, values, ACCOUNT_MEASURES[name], limit))
        else:
            checked.append(check_run_against_budget(trace.run, name, limit))
    told = None if baseline is None else baseline.source
    return RecordingCheck(trace.source, told, tuple(checked), notes)


def _account_values(trace: Trace, measure: Measure) -> dict[str, Values]:
    """Returns the values of a measure of the account, by its name; empty without steps."""
    if missing_requirement_sentences(trace, ("steps",)):
        return {}
    values = measure.per_step(trace, step_windows(trace))
    return {measure.name: values} if values.size else {}


def _check_against_baseline(
    trace: Trace,
    step_values: Mapping[str, Values],
    baseline: Baseline,
    max_regress: float,
    *,
    has_same_devices: bool,
) -> Iterator[MeasureCheck]:
    for name, before in baseline.measures.items():
        measure = MEASURES[name]
        after = step_values.get(name)
        if after is None:
            why = _why_measure_is_unknown(trace, measure)
            yield MeasureCheck(
                name,
                "baseline",
                "unknown",
                None,
                _maximum_or_median_of_steps(measure, before),
                why=why,
            )
        elif measure.is_exact:
            now, limit = (
                _maximum_or_median_of_steps(measure, after),
                _maximum_or_median_of_steps(measure, before),
            )
            state: CheckState = "over" if now > limit else "better" if now < limit else "within"
            yield MeasureCheck(
                name,
                "baseline",
                state,
                now,
                limit,
                now - limit,
                lines=_contributing_lines_if_over(trace, name, state),
            )
        elif not has_same_devices:
            why = "the devices differ"
            yield MeasureCheck(
                name,
                "baseline",
                "unknown",
                _maximum_or_median_of_steps(measure, after),
                None,
                why=why,
            )
        else:
            yield _check_time_against_baseline(trace, name, before, after, max_regress)


def _check_time_against_baseline(
    trace: Trace, measure_name: str, before: Values, after: Values, max_regress: float
) -> MeasureCheck:
    found = median_shift(before, after)
    state: CheckState = "within"
    if min(before.size, after.size) < _MIN_STEPS_TO_CHECK_TIMES or found.p_value is None:
        why = f"{before.size} and {after.size} steps are too few to estimate variation"
        return MeasureCheck(measure_name, "baseline", "unknown", found.after, found.before, why=why)
    if found.is_significant and found.difference > max_regress * found.before:
        state = "over"
    elif found.is_significant and found.difference < 0:
        state = "better"
    return MeasureCheck(
        measure_name,
        "baseline",
        state,
        found.after,
        found.before,
        found.difference,
        found.low,
        found.high,
        lines=_contributing_lines_if_over(trace, measure_name, state),
    )


def _check_against_budget(
    trace: Trace, step_values: Mapping[str, Values], measure: Measure, limit: float
) -> MeasureCheck:
    values = step_values.get(measure.name)
    if values is None:
        why = _why_measure_is_unknown(trace, measure)
        return MeasureCheck(measure.name, "budget", "unknown", None, limit, why=why)
    now = _maximum_or_median_of_steps(measure, values)
    if measure.is_exact:
        least = now
    elif values.size < _MIN_STEPS_TO_CHECK_TIMES:
        why = f"{values.size} steps are too few to estimate variation"
        return MeasureCheck(measure.name, "budget", "unknown", now, limit, why=why)
    else:
        least = float(np.quantile(values, 0.25))
    state: CheckState = "over" if least > limit else "within"
    lines = _contributing_lines_if_over(trace, measure.name, state)
    return MeasureCheck(measure.name, "budget", state, now, limit, now - limit, lines=lines)


def _maximum_or_median_of_steps(measure: Measure, values: Values) -> float:
    """Returns one value for all steps: the maximum of a count, or the median of a time."""
    return float(values.max() if measure.is_exact else np.median(values))


def _why_measure_is_unknown(trace: Trace, measure: Measure) -> str:
    lacks = missing_requirement_sentences(trace, ("steps", *measure.needs))
    return f"the recording lacks {lacks[0]}" if lacks else "the recording does not contain it"


def _contributing_lines_if_over(
    trace: Trace, measure_name: str, state: CheckState
) -> tuple[ContributingLine, ...]:
    return (
        contributing_lines(trace, measure_name)[:_MAX_LISTED_SOURCE_LINES]
        if state == "over"
        else ()
    )


def contributing_lines(trace: Trace, measure_name: str) -> tuple[ContributingLine, ...]:
    """Returns the source lines with the largest amounts of a measure first; () if unknown."""
    if measure_name in ACCOUNT_MEASURES:
        table = trace.view("account").filter(pl.col("class") == time_class_of_measure(measure_name))
        table = table.select("file", "line", "function", amount="time")
    elif measure_name in _VIEW_OPTIONS_AND_COLUMN_BY_MEASURE:
        view, options, column = _VIEW_OPTIONS_AND_COLUMN_BY_MEASURE[measure_name]
        table = trace.view(view, **options).select("file", "line", "function", amount=column)
    else:
        return ()
    known = (
        table.drop_nulls(["file", "line", "amount"])
        .group_by("file", "line")
        .agg(pl.col("function").first(), pl.col("amount").sum())
    )
    spent = known.filter(pl.col("amount") > 0)
    most = spent.sort("amount", "file", "line", descending=[True, False, False])
    return tuple(
        ContributingLine(file, line, function, float(amount))
        for file, line, function, amount in most.rows()
    )
