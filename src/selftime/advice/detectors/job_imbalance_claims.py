"""Makes claims of savings from the steps of a job with and without some imbalance."""

import polars as pl

from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.advice.savings.claims import ModelledClaim
from selftime.advice.step_statistics import StepStatistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.ranks.job_step_replay import StepTimes
from selftime.analysis.ranks.rank_summary import lateness_cause_intervals
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.intervals import length
from selftime.trace import Trace


def claim_of_step_times(
    trace: Trace, recorded: StepTimes, changed: StepTimes, step_stats: StepStatistics
) -> ModelledClaim:
    """Returns the claim that the job's step takes as long as `changed` instead of `recorded`.

    The estimate is the larger difference: waits of unknown cause are most likely for what changes.
    The smaller one, in which they stay as they are, is the lower end.
    """
    low, high = (
        min(max(gain / 1e6, 0.0), step_stats.step_ms) for gain in recorded.longer_than(changed)
    )
    noise = recorded.error_of_excess(changed) / 1e6
    changes = _changes_that_save(trace, high * 1e6 * counted_step_count(trace)) if high else ()
    return ModelledClaim(high, high, changes=changes, low_ms=low, noise_ms=noise)


def _changes_that_save(trace: Trace, saved_ns: float) -> tuple[Change, ...]:
    """Returns changes of one rank that shorten what it waits in, or else computes, by the saving.

    Args:
        trace: The trace of the rank.
        saved_ns: What all counted steps together save, in ns.
    """
    work = device_work(trace)
    if not work.height:
        communicated = lateness_cause_intervals(trace)["communication"]
        return (CutHostTime(communicated, _kept_share(length(communicated), saved_ns)),)
    inside = is_instant_in_windows(work["start"].to_numpy(), counted_step_windows(trace))
    work = work.filter(pl.Series(inside, dtype=pl.Boolean)).with_columns(
        duration=pl.col("end") - pl.col("start")
    )
    is_wait = pl.col("kind") == "communication"
    waits, others = work.filter(is_wait), work.filter(~is_wait)
    chosen = waits if waits["duration"].sum() >= saved_ns else others
    kept = _kept_share(int(chosen["duration"].sum()), saved_ns)
    return (ScaleDeviceWork(chosen["id"].cast(pl.Int64).to_numpy(), kept),)


def _kept_share(time_ns: int, saved_ns: float) -> float:
    """Returns the share, 0 to 1, of a time that remains if so much of it is saved."""
    return max(1 - saved_ns / time_ns, 0.0) if time_ns else 1.0
