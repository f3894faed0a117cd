"""Checks runs against limits: the runs of a baseline, or budgets per step.

Counts are exact, and are compared with a baseline always; times only if asked, as they depend on
the machine and its load. A time exceeds a budget if three quarters of the steps do, since other
load on a machine only makes steps longer; of three runs and more if the interval between runs does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.array_types import Floats as Values
from selftime.compare.amounts_per_step import step_windows
from selftime.compare.check.account_measures import (
    ACCOUNT_MEASURES,
    BUDGET_MEASURES,
    time_class_of_measure,
)
from selftime.compare.check.baseline_checks import (
    TimeComparison,
    check_count,
    count_measures,
    load_sentence,
    note_on_larger_steps,
    time_measures,
)
from selftime.compare.check.baseline_files import Baseline
from selftime.compare.check.history_changes import HistoryReport
from selftime.compare.check.measured_runs import MeasuredRun, figures_of_runs, is_time
from selftime.compare.check.run_checks import (
    CheckState,
    ContributingLine,
    MeasureCheck,
    check_run_against_budget,
    lines_of_run_measure,
    why_run_measure_is_unknown,
)
from selftime.compare.check.step_measures import MEASURES, Measure
from selftime.compare.comparability import property_differences
from selftime.compare.run_differences import interval_of_runs
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
    """Differences between this recording and the baseline that make times hard to compare, and what
    else has to be known to read the result, as sentences."""
    times_left_out: tuple[str, ...] = ()
    """Names of times in the baseline that were not compared, as nobody asked for them."""
    runs: int = 1
    """Number of checked runs."""
    baseline_runs: int = 0
    """Number of runs of the baseline; 0 without one."""
    load: float | None = None
    """Mean number of cores that other programs used during the checked runs; None if unknown."""
    history: HistoryReport | None = None
    """What the commits before took, and where it changed; None unless a history is kept."""

    @property
    def state(self) -> Literal["within", "over", "unknown"]:
        """Returns the worst state of any checked measure; `unknown` if nothing was checked.

        It is `over` if any measure is, else `unknown` if any is, else `within`.
        """
        states = {checked.state for checked in self.checked}
        if self.history is not None:
            states.add("over" if self.history.has_new_regression else "within")
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
    judges_times: bool = False,
) -> RecordingCheck:
    """Checks one recording, as `check_recordings` does several."""
    return check_recordings(
        (trace,),
        baseline=baseline,
        budgets=budgets,
        max_regress=max_regress,
        judges_times=judges_times,
    )


def check_recordings(
    traces: Sequence[Trace],
    *,
    baseline: Baseline | None = None,
    budgets: Mapping[str, float] | None = None,
    max_regress: float = 0.05,
    judges_times: bool = False,
) -> RecordingCheck:
    """Checks recordings of runs of a program against a baseline, budgets, or both.

    Args:
        traces: The recordings, one of each run.
        baseline: The runs that they must not exceed.
        budgets: The most that a step, or the run, may take, by the name of a measure.
        max_regress: The allowed increase of times over the baseline, as a ratio.
        judges_times: Whether times are compared with the baseline, and not counts alone.
    """
    runs = tuple(map(MeasuredRun.from_trace, traces))
    checked: list[MeasureCheck] = []
    notes: list[str] = []
    if baseline is not None:
        like = runs[0].comparability
        notes += property_differences(baseline.runs[0].comparability, like)
        checked += _check_counts(traces, runs, baseline, notes)
        if judges_times:
            checked += _check_times(traces, runs, baseline, max_regress, notes)
    budget_checks = [
        _check_budget(traces, runs, name, limit) for name, limit in (budgets or {}).items()
    ]
    if any(is_time(check.measure) for check in budget_checks) and not judges_times:
        notes.append(load_sentence(runs))
    left_out = () if baseline is None or judges_times else time_measures(baseline)
    return RecordingCheck(
        ", ".join(trace.source for trace in traces),
        None if baseline is None else baseline.source,
        (*checked, *budget_checks),
        tuple(notes),
        left_out,
        len(runs),
        0 if baseline is None else len(baseline.runs),
        _mean_load(runs),
    )


def _mean_load(runs: Sequence[MeasuredRun]) -> float | None:
    loads = [run.load for run in runs if run.load is not None]
    return round(float(np.mean(loads)), 3) if loads else None


def _check_counts(
    traces: Sequence[Trace], runs: Sequence[MeasuredRun], baseline: Baseline, notes: list[str]
) -> Iterator[MeasureCheck]:
    for name in count_measures(baseline):
        lacking = _first_without_figure(traces, runs, name)
        if lacking is not None:
            limit = float(figures_of_runs(baseline.runs, name).max())
            why = _why_unknown(lacking, name)
            yield MeasureCheck(name, "baseline", "unknown", None, limit, why=why)
            continue
        found = check_count(name, baseline.runs, runs)
        note = note_on_larger_steps(found, baseline.runs, runs)
        notes += [note] if note else []
        yield _with_lines(found, traces)


def _check_times(
    traces: Sequence[Trace],
    runs: Sequence[MeasuredRun],
    baseline: Baseline,
    max_regress: float,
    notes: list[str],
) -> Iterator[MeasureCheck]:
    comparison = TimeComparison.of_runs(baseline, runs)
    notes.append(comparison.load_sentence())
    names = time_measures(baseline)
    for name in names:
        lacking = _first_without_figure(traces, runs, name)
        if lacking is not None:
            why = _why_unknown(lacking, name)
            yield MeasureCheck(name, "baseline", "unknown", None, None, why=why)
        else:
            yield _with_lines(comparison.check(name, max_regress, len(names)), traces)


def _first_without_figure(
    traces: Sequence[Trace], runs: Sequence[MeasuredRun], name: str
) -> Trace | None:
    """Returns the first recording that does not tell a measure; None if all do."""
    pairs = zip(traces, runs, strict=True)
    return next((trace for trace, run in pairs if run.figure(name) is None), None)


def _why_unknown(trace: Trace, name: str) -> str:
    if name in MEASURES:
        return _why_measure_is_unknown(trace, MEASURES[name])
    return why_run_measure_is_unknown(trace.run, name) or "the steps are too few for its variation"


def _with_lines(check: MeasureCheck, traces: Sequence[Trace]) -> MeasureCheck:
    """Adds to a measure above its limit the lines of the last recording that add most to it."""
    if check.state != "over":
        return check
    if check.measure in BUDGET_MEASURES:
        return replace(check, lines=_contributing_lines_if_over(traces[-1], check.measure, "over"))
    return replace(check, lines=lines_of_run_measure(traces[-1].run, check.measure))


def _check_budget(
    traces: Sequence[Trace], runs: Sequence[MeasuredRun], name: str, limit: float
) -> MeasureCheck:
    """Checks runs against a budget: each alone, or times of three and more by how they vary."""
    checks = [
        _check_budget_of_run(t, run, name, limit) for t, run in zip(traces, runs, strict=True)
    ]
    values = np.array([check.now for check in checks if check.now is not None])
    interval = interval_of_runs(values) if is_time(name) and values.size == len(checks) else None
    if interval is None:
        worst = {"over": 2, "unknown": 1, "within": 0}
        return max(checks, key=lambda check: (worst[check.state], check.now or 0.0))
    now = float(values.mean())
    state: CheckState = "over" if interval[0] > limit else "within"
    low, high = (end - limit for end in interval)
    found = MeasureCheck(name, "budget", state, now, limit, now - limit, low, high)
    return _with_lines(found, traces)


def _check_budget_of_run(trace: Trace, run: MeasuredRun, name: str, limit: float) -> MeasureCheck:
    if name in MEASURES:
        return _check_against_budget(trace, run.measures, MEASURES[name], limit)
    if name in ACCOUNT_MEASURES:
        values = _account_values(trace, ACCOUNT_MEASURES[name])
        return _check_against_budget(trace, values, ACCOUNT_MEASURES[name], limit)
    return check_run_against_budget(trace.run, name, limit)


def _account_values(trace: Trace, measure: Measure) -> dict[str, Values]:
    """Returns the values of a measure of the account, by its name; empty without steps."""
    if missing_requirement_sentences(trace, ("steps",)):
        return {}
    values = measure.per_step(trace, step_windows(trace))
    return {measure.name: values} if values.size else {}


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
    if lacks:
        return f"the recording lacks {lacks[0]}"
    if "memory" in measure.needs:
        return (
            "the recording does not tell it: there is no steady step but its first, in which "
            "releases of what was allocated before are missing, or there are records without sizes"
        )
    return "the recording does not contain it"


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
