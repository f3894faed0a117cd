"""Finds device work that operators launched, and builds simulated changes that shorten them."""

import polars as pl

from selftime.advice.detectors.counted_steps import begins_within_enclosing, operator_intervals
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.advice.savings.claims import RemovalClaim
from selftime.analysis.device.device_work import device_work
from selftime.analysis.steps.steady_steps import is_instant_in_windows
from selftime.intervals import Intervals
from selftime.trace import Trace


def device_work_launched_by(trace: Trace, operators: pl.DataFrame) -> pl.Series:
    """Returns slice ids of device work that the operators, or operators in them, launched."""
    told = trace.device_args.filter(pl.col("operator").is_not_null()).select("id", "operator")
    launchers = trace.slices.select("track", "start")[told["operator"]]
    return told["id"].filter(
        pl.Series(begins_within_enclosing(launchers, operators), dtype=pl.Boolean)
    )


def device_work_launched_during(trace: Trace, intervals: Intervals) -> pl.DataFrame:
    """Returns the kernels, copies and memsets that were launched within the intervals."""
    work = device_work(trace).filter(pl.col("launched").is_not_null())
    window = pl.DataFrame({"start": intervals.starts, "end": intervals.ends})
    begun = is_instant_in_windows(work["launched"].to_numpy(), window)
    return work.filter(pl.Series(begun, dtype=pl.Boolean))


def change_shortening_operators(trace: Trace, operators: pl.DataFrame, kept_share: float) -> Change:
    """Returns a change, for simulation, that shortens operators to the share `kept_share`.

    On the device if there is one, else on the host.
    """
    if trace.device_args.height:
        return ScaleDeviceWork(
            device_work_launched_by(trace, operators).cast(pl.Int64).to_numpy(), kept_share
        )
    return CutHostTime(operator_intervals(operators), kept_share)


def claim_of_shorter_operators(
    trace: Trace, operators: pl.DataFrame, kept_share: float, *, largest_kept_share: float
) -> RemovalClaim:
    """Returns the claim that a fix leaves a share of operators' time.

    Args:
        trace: The trace.
        operators: The operators.
        kept_share: The share of their time that is expected to remain.
        largest_kept_share: The share that remains if the fix helps least, where that is larger.
    """
    likely, worst, largest = (
        (change_shortening_operators(trace, operators, share),)
        for share in (kept_share, max(kept_share, largest_kept_share), 0.0)
    )
    return RemovalClaim(likely, worst_case_changes=worst, largest_changes=largest)


def changes_shortening_intervals(
    trace: Trace, intervals: Intervals, kept_share: float
) -> tuple[Change, ...]:
    """Returns changes, for simulation, that shorten host time and device work launched in it."""
    work = device_work_launched_during(trace, intervals)["id"].cast(pl.Int64).to_numpy()
    return (
        CutHostTime(intervals, kept_share),
        *([ScaleDeviceWork(work, kept_share)] if work.size else []),
    )
