"""Makes claims of savings from the steps of a job with and without some imbalance."""

from selftime.advice.savings.claims import ModelledClaim
from selftime.advice.step_statistics import StepStatistics
from selftime.analysis.ranks.job_imbalance import StepTimes


def claim_of_step_times(
    recorded: StepTimes, changed: StepTimes, step_stats: StepStatistics
) -> ModelledClaim:
    """Returns the claim that the job's step takes as long as `changed` instead of `recorded`.

    The estimate is the larger difference: waits of unknown cause are most likely for what changes.
    The smaller one, in which they stay as they are, is the lower end.
    """
    low, high = (
        min(max(gain / 1e6, 0.0), step_stats.step_ms) for gain in recorded.longer_than(changed)
    )
    noise = recorded.deviation_of_excess(changed) / 1e6
    return ModelledClaim(high, high, low_ms=low, noise_ms=noise)
