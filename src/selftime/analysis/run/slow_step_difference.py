"""Compares a recorded slow step of a run with its usual recorded steps, line by line."""

from typing import Final

import polars as pl

from selftime.analysis.call_tree.line_costs import line_costs
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.trace import Trace

_PLACE: Final = ("file", "line", "function")
_TIMES: Final = ("self_cpu_time", "device_time")


def slow_step_difference(slow: Trace, usual: Trace) -> pl.DataFrame | None:
    """Returns what a slow step takes beyond the mean of usual steps, one row per source line.

    Args:
        slow: The recording whose last step is the slow one.
        usual: The recording of usual steps of the same run.

    Returns:
        Columns file, line and function, null for time of no known line; how, how most of it is
        known in the slow step; self_cpu_time, host time of the line itself, and device_time, of the
        work that it launched, both in ns beyond the usual step. The line with the largest time
        comes first. None if a recording has no steps, or less than the whole slow step.
    """
    usual_steps, slow_steps = steps_with_counted_flags(usual), steps_with_counted_flags(slow)
    if not usual_steps.height or not slow_steps.height or slow.facts.get("partial"):
        return None
    counted = int(usual_steps["counted"].sum())
    if not counted:
        return None
    mark = slow_steps["mark"][-1]
    of_slow = _times_by_line(slow, "" if mark is None or slow_steps.height == 1 else mark)
    of_usual = _times_by_line(usual, "").with_columns(pl.col(_TIMES) // counted)
    joined = of_slow.join(of_usual, on=_PLACE, how="full", coalesce=True, nulls_equal=True)
    beyond = [
        (pl.col(name).fill_null(0) - pl.col(f"{name}_right").fill_null(0)).alias(name)
        for name in _TIMES
    ]
    longest = pl.max_horizontal(*_TIMES)
    return joined.select(*_PLACE, "how", *beyond).sort(-longest, *_PLACE)


def _times_by_line(trace: Trace, within: str) -> pl.DataFrame:
    """Returns the times in ns of each line in the counted steps, or in the step marked `within`."""
    costs = line_costs(trace, within_slice_named=within, counted_steps_only=not within)
    largest = pl.max_horizontal(*_TIMES).arg_max()
    return costs.group_by(_PLACE).agg(pl.col("how").get(largest), pl.col(_TIMES).sum())
