"""Widens the interval of a saving whose cause is in few of the recorded steps.

A cause that was seen in one step of five may come in each tenth step, or in every second one: its
rate is known no better than the number of steps that showed it tells.
"""

from dataclasses import replace
from math import sqrt
from typing import Final

import numpy as np

from selftime.advice.replay import CutHostTime
from selftime.advice.savings.claims import ModelledClaim, RemovalClaim, SavingClaim
from selftime.advice.savings.saving import SavingAmount
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.intervals import covered_time_before, union
from selftime.trace import Trace

MAX_SHARE_OF_RARE_STEPS: Final = 0.5
"""Share of the recorded steps from which a cause is one of each step, whose rate is known."""

DEVIATIONS_OF_INTERVAL: Final = 1.2816
"""Number of standard deviations within which 80 % of a normal distribution lie."""


def with_interval_of_rate(trace: Trace, claim: SavingClaim, amount: SavingAmount) -> SavingAmount:
    """Returns the saving with an interval that allows for the rate of a rare cause on the host."""
    if not isinstance(claim, RemovalClaim | ModelledClaim):
        return amount
    cuts = [change for change in claim.changes if isinstance(change, CutHostTime)]
    if not cuts or len(cuts) < len(claim.changes):
        return amount
    seen, steps = _steps_with_time(trace, cuts)
    if not 0 < seen < MAX_SHARE_OF_RARE_STEPS * steps:
        return amount
    low, high = rate_interval(seen)
    high_ms = max(amount.high_ms, min(high * amount.estimate_ms, amount.step_ms))
    return replace(
        amount,
        low_ms=min(amount.low_ms, low * amount.estimate_ms),
        high_ms=high_ms,
        upper_ms=max(amount.upper_ms, high_ms),
    )


def rate_interval(count: int) -> tuple[float, float]:
    """Returns the 80 % interval of a rate of which so many events were seen, as its multiples.

    Byar's approximation of the exact interval of a Poisson distribution.

    >>> [round(end, 2) for end in rate_interval(1)], [round(end, 2) for end in rate_interval(20)]
    ([0.1, 3.87], [0.73, 1.35])
    """

    def end(events: int, deviations: float) -> float:
        return float(events * (1 - 1 / (9 * events) + deviations / (3 * sqrt(events))) ** 3)

    low, high = end(count, -DEVIATIONS_OF_INTERVAL), end(count + 1, DEVIATIONS_OF_INTERVAL)
    return low / count, high / count


def _steps_with_time(trace: Trace, cuts: list[CutHostTime]) -> tuple[int, int]:
    """Returns the number of recorded steps in which the changes have time, and that of all."""
    steps = steps_with_counted_flags(trace)
    times = union(
        np.concatenate([cut.intervals.starts for cut in cuts]),
        np.concatenate([cut.intervals.ends for cut in cuts]),
    )
    begin, end = (covered_time_before(times, steps[name].to_numpy()) for name in ("start", "end"))
    return int((end > begin).sum()), steps.height
