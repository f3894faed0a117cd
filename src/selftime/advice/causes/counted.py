"""The steps that rules look at: how many they are, and what began in them."""

import polars as pl

from selftime.trace import Trace
from selftime.views.accounts.steps.judging import counted_windows, is_within, judged_steps

__all__ = ["counted", "recorded_windows", "steps_counted", "steps_recorded"]


def steps_counted(trace: Trace) -> int:
    """How many steps count; at least 1, to divide by."""
    return max(counted_windows(trace).height, 1)


def counted(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """Those slices that began in a step that counts and whose end is known."""
    within = is_within(slices["start"].to_numpy(), counted_windows(trace))
    return slices.filter(pl.Series(within, dtype=pl.Boolean) & pl.col("duration").is_not_null())


def steps_recorded(trace: Trace) -> int:
    """How many steps `recorded_operators` are of."""
    return max(recorded_windows(trace).height, 1)


def recorded_windows(trace: Trace) -> pl.DataFrame:
    """Start and end of the steps that count; with a device of all, which its queue carries on."""
    if trace.device_args.height:
        return judged_steps(trace).select("start", "end")
    return counted_windows(trace)
