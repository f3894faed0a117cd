"""Whether a recording keeps within what is allowed: not slower than a baseline, within budgets.

Counts are exact: one more than before is one too many. Times vary: one is over a baseline where it
is slower by more than chance and by more than is allowed, and over a budget where three steps of
four are, as what else runs on a machine makes steps longer, never shorter.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime.analysis.requirements import missing
from selftime.arrays import Floats as Values
from selftime.compare.baselines import Baseline
from selftime.compare.comparability import Likeness, differing
from selftime.compare.measures import MEASURES, Measure, measured
from selftime.compare.noise import shift
from selftime.trace import Trace

State: TypeAlias = Literal["within", "better", "over", "unknown"]

STATUS: Final = {"within": 0, "over": 1, "unknown": 3}
"""Of the command: within, a regression, cannot judge."""
_LINES: Final = 3
"""Lines that are named for what is over."""
_FEWEST: Final = 3
"""Steps; of fewer times are not judged."""
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
"""The view that tells on which lines something is spent, its options, and its column."""


@dataclass(frozen=True, slots=True)
class Line:
    """A source line that spends some of what is over."""

    file: str
    line: int
    function: str | None
    much: float
    """In the view's unit, over all steps."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One measure held against one limit."""

    measure: str
    against: Literal["baseline", "budget"]
    state: State
    now: float | None
    """What a step takes: the median of times, the most of counts."""
    limit: float | None
    """What it took, or may take at most."""
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    """The 95 % interval of the difference of times."""
    why: str = ""
    """Where it is unknown: why."""
    lines: tuple[Line, ...] = ()
    """Where it is over: the lines that spend most of it."""


@dataclass(frozen=True, slots=True)
class Check:
    """All that was held against limits."""

    source: str
    baseline: str | None
    checked: tuple[Checked, ...]
    notes: tuple[str, ...]
    """In what the recording differs from that of the baseline."""

    @property
    def state(self) -> Literal["within", "over", "unknown"]:
        """Over if anything is; else unknown if anything is, or nothing was held against a limit."""
        states = {one.state for one in self.checked}
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
    """Hold a recording against a baseline, budgets, or both.

    Args:
        trace: The recording.
        baseline: What it must not be slower than, nor take more than.
        budgets: The most that a step may take, by the name of a measure.
        max_regress: By how much of the baseline's times a step may take longer, as a ratio.
    """
    own = measured(trace)
    checked: list[Checked] = []
    notes: tuple[str, ...] = ()
    if baseline is not None:
        like = Likeness.of(trace)
        notes = tuple(differing(baseline.like, like))
        is_alike = baseline.like.devices == like.devices
        checked += _against(trace, own, baseline, max_regress, is_alike=is_alike)
    checked += [
        _within(trace, own, MEASURES[name], limit) for name, limit in (budgets or {}).items()
    ]
    told = None if baseline is None else baseline.source
    return Check(trace.source, told, tuple(checked), notes)


def _against(
    trace: Trace,
    own: Mapping[str, Values],
    baseline: Baseline,
    max_regress: float,
    *,
    is_alike: bool,
) -> Iterator[Checked]:
    for name, before in baseline.measures.items():
        measure = MEASURES[name]
        after = own.get(name)
        if after is None:
            why = _lacking(trace, measure)
            yield Checked(name, "baseline", "unknown", None, _typical(measure, before), why=why)
        elif measure.is_exact:
            now, limit = _typical(measure, after), _typical(measure, before)
            state: State = "over" if now > limit else "better" if now < limit else "within"
            yield Checked(
                name, "baseline", state, now, limit, now - limit, lines=_blamed(trace, name, state)
            )
        elif not is_alike:
            why = "the devices differ"
            yield Checked(name, "baseline", "unknown", _typical(measure, after), None, why=why)
        else:
            yield _timed(trace, name, before, after, max_regress)


def _timed(trace: Trace, name: str, before: Values, after: Values, max_regress: float) -> Checked:
    found = shift(before, after)
    state: State = "within"
    if min(before.size, after.size) < _FEWEST or found.chance is None:
        why = f"{before.size} and {after.size} steps are too few to estimate variation"
        return Checked(name, "baseline", "unknown", found.after, found.before, why=why)
    if found.is_told and found.difference > max_regress * found.before:
        state = "over"
    elif found.is_told and found.difference < 0:
        state = "better"
    return Checked(
        name,
        "baseline",
        state,
        found.after,
        found.before,
        found.difference,
        found.low,
        found.high,
        lines=_blamed(trace, name, state),
    )


def _within(trace: Trace, own: Mapping[str, Values], measure: Measure, limit: float) -> Checked:
    values = own.get(measure.name)
    if values is None:
        why = _lacking(trace, measure)
        return Checked(measure.name, "budget", "unknown", None, limit, why=why)
    now = _typical(measure, values)
    if measure.is_exact:
        least = now
    elif values.size < _FEWEST:
        why = f"{values.size} steps are too few to estimate variation"
        return Checked(measure.name, "budget", "unknown", now, limit, why=why)
    else:
        least = float(np.quantile(values, 0.25))
    state: State = "over" if least > limit else "within"
    lines = _blamed(trace, measure.name, state)
    return Checked(measure.name, "budget", state, now, limit, now - limit, lines=lines)


def _typical(measure: Measure, values: Values) -> float:
    """The most of what is counted; the median of times."""
    return float(values.max() if measure.is_exact else np.median(values))


def _lacking(trace: Trace, measure: Measure) -> str:
    lacks = missing(trace, ("steps", *measure.needs))
    return f"the recording lacks {lacks[0]}" if lacks else "the recording does not tell it"


def _blamed(trace: Trace, name: str, state: State) -> tuple[Line, ...]:
    return lines_of(trace, name)[:_LINES] if state == "over" else ()


def lines_of(trace: Trace, name: str) -> tuple[Line, ...]:
    """The lines that spend a measure, most first; empty where no view tells."""
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
