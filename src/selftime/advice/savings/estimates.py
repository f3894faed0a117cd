"""Computes savings from claims, with intervals, for steps with and without profiler.

By how much a recording slowed a host that nobody timed without it is not known: the low end of the
interval leaves room for that.
"""

from collections.abc import Iterable
from dataclasses import replace

from selftime.advice.replay import Change, CutHostTime, RemoveWaits, replay_of
from selftime.advice.savings.claims import ComputedSavingClaim, ModelledClaim, RemovalClaim
from selftime.advice.savings.saving import SavingAmount
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.trace import Trace


def estimated_saving_of_recorded_step(
    trace: Trace, claim: RemovalClaim | ModelledClaim
) -> SavingAmount:
    """Returns how many ms of a recorded step the claimed fix saves; the result is cached."""
    known = _cached_saving_amounts_by_claim(trace)
    if claim not in known:
        step_stats = step_statistics(trace)
        if step_stats is None:
            raise ValueError(
                "cannot estimate a saving: the trace has no measured step with a duration"
            )
        known[claim] = (
            _simulated_saving_amount(trace, step_stats, claim)
            if isinstance(claim, RemovalClaim)
            else _saving_amount_of_rule_model(step_stats, claim)
        )
    return known[claim]


@cached_per_trace
def _cached_saving_amounts_by_claim(
    _trace: Trace,
) -> dict[RemovalClaim | ModelledClaim, SavingAmount]:
    return {}


def replayed_saving_ms(
    trace: Trace, step_stats: StepStatistics, changes: Iterable[Change]
) -> float:
    """Returns how many ms of a typical recorded step the changes save, by simulation."""
    return step_stats.scaled_to_typical_step(replay_of(trace).saving(*changes) / 1e6)


def _simulated_saving_amount(
    trace: Trace, step_stats: StepStatistics, claim: RemovalClaim
) -> SavingAmount:
    estimate = replayed_saving_ms(trace, step_stats, claim.changes)
    most = replayed_saving_ms(
        trace, step_stats, claim.largest_changes or map(_change_removing_all_time, claim.changes)
    )
    most = min(max(most, estimate), step_stats.step_ms)
    estimate = min(estimate, most)
    low, high = claim.interval.low * estimate, most
    if claim.worst_case_changes:
        worst = replayed_saving_ms(trace, step_stats, claim.worst_case_changes)
        low = min(low, claim.worst_case_share * worst)
    if claim.interval.high is not None:
        best = (
            replayed_saving_ms(trace, step_stats, claim.best_case_changes)
            if claim.best_case_changes
            else 0.0
        )
        high = min(max(claim.interval.high * estimate, best), most)
    estimate -= step_stats.measured_slowdown * claim.added_ms
    low -= step_stats.measured_slowdown * max(claim.added_ms, claim.most_added_ms)
    return SavingAmount(
        step_stats.step_ms, estimate, min(low, estimate), max(high, estimate), most, "replay"
    )


def _change_removing_all_time(change: Change) -> Change:
    """Returns a change that removes all the time which the given change only shortens."""
    return change if isinstance(change, RemoveWaits) else replace(change, kept_share=0.0)


def _saving_amount_of_rule_model(step_stats: StepStatistics, claim: ModelledClaim) -> SavingAmount:
    estimate, interval = max(claim.saved_ms, 0.0), claim.interval
    low = interval.low * estimate
    if claim.low_ms is not None:
        low = min(low, claim.low_share * claim.low_ms)
    high = claim.max_saving_ms
    if interval.high is not None:
        high = max(interval.high * estimate, claim.high_ms or 0.0)
    most = max(claim.max_saving_ms, high if claim.may_exceed_max else estimate)
    high = max(min(high, most), estimate)
    return SavingAmount(
        claim.step_ms or step_stats.step_ms, estimate, low, high, most, claim.method
    )


def without_recording_cost(
    step_stats: StepStatistics,
    claim: RemovalClaim | ModelledClaim | ComputedSavingClaim,
    amount: SavingAmount,
) -> SavingAmount:
    """Returns the saving in a step without profiler, computed from that in a recorded step.

    The upper bound stays what was recorded: a recorder slows some things more than others, and
    makes none of them faster. Device time stays as well; host time may be the recorder's where
    nobody measured that.
    """
    if isinstance(claim, ComputedSavingClaim):
        return amount
    if any(isinstance(change, CutHostTime) for change in claim.changes):
        amount = replace(amount, low_ms=amount.low_ms / step_stats.assumed_slowdown)
    if not claim.is_slowed:
        kept = (
            amount.upper_ms
            if isinstance(claim, ModelledClaim) and claim.step_ms is not None
            else 0.0
        )
        return replace(amount, step_ms=step_stats.unrecorded_time_ms(amount.step_ms - kept) + kept)
    return replace(
        amount,
        step_ms=step_stats.unrecorded_time_ms(amount.step_ms),
        estimate_ms=step_stats.unrecorded_time_ms(amount.estimate_ms),
        low_ms=step_stats.unrecorded_time_ms(amount.low_ms),
        high_ms=step_stats.unrecorded_time_ms(amount.high_ms),
    )
