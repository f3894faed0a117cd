"""Measures what each step is spent on by class of time, for budgets on rows of the account."""

from functools import partial
from typing import Final

import polars as pl

from selftime.analysis.account.step_account import account_segments
from selftime.analysis.account.time_classes import TIME_CLASSES
from selftime.array_types import Floats
from selftime.compare.amounts_per_step import StepWindows
from selftime.compare.check.step_measures import MEASURES, Measure
from selftime.trace import Trace

ACCOUNT_MEASURE_PREFIX: Final = "account."
"""What the names of measures of the account begin with; the class follows, then `_ms`."""


def _class_times_per_step(trace: Trace, _steps: StepWindows, *, time_class: str) -> Floats:
    """Returns for each counted step the ms that it is spent on one class of time."""
    segments = account_segments(trace)
    if segments["counted"].any():
        segments = segments.filter("counted")
    time = pl.when(pl.col("class") == time_class).then(pl.col("end") - pl.col("start")).otherwise(0)
    times = segments.group_by("step", maintain_order=True).agg(time=time.sum())
    return times["time"].cast(pl.Float64).to_numpy() / 1e6


ACCOUNT_MEASURES: Final = {
    f"{ACCOUNT_MEASURE_PREFIX}{name}_ms": Measure(
        f"{ACCOUNT_MEASURE_PREFIX}{name}_ms",
        f"Time of a step of the class `{name}`, as in the view `account`.",
        "text",
        partial(_class_times_per_step, time_class=name),
        is_exact=False,
    )
    for name in TIME_CLASSES
}
"""Measures of what a step is spent on, by name; budgets may be on them, baselines do not have
them."""

BUDGET_MEASURES: Final = {**MEASURES, **ACCOUNT_MEASURES}
"""All measures of a step on which budgets may be, by name."""


def time_class_of_measure(measure_name: str) -> str:
    """Returns the class of time that a measure of the account is about.

    >>> time_class_of_measure("account.data_wait_ms")
    'data_wait'
    """
    return measure_name.removeprefix(ACCOUNT_MEASURE_PREFIX).removesuffix("_ms")
