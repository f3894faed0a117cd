"""Widens the intervals of estimated savings by the errors that earlier estimates had.

`calibration.json` holds, for each rule and for all of them together, the factors between which 80 %
of the achieved savings lay, as parts of the promised ones. `scripts/calibrate.py` makes it from
verifications: those of the corpus, and those that `selftime verify --keep` stored.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from selftime.advice.savings.saving import SavingAmount

FORMAT: Final = "selftime.calibration/1"
"""Name and version of the format of `calibration.json`."""
ALL_RULES_KEY: Final = "*"
"""Key in `calibration.json` under which the error factors of all rules together are."""
MIN_VERIFIED_SAVINGS_PER_RULE: Final = 10
"""Smallest number of measured savings of a rule for the rule to have its own error factors."""


@dataclass(frozen=True, slots=True)
class CalibrationFactors:
    """10th and 90th percentile of the ratio of measured to estimated savings."""

    low: float
    high: float
    pairs: int
    """Number of pairs of an estimated and a measured saving behind the percentiles."""


NO_CALIBRATION_FACTORS: Final[Mapping[str, CalibrationFactors]] = MappingProxyType({})
"""Error factors by rule if no saving was ever measured: an empty mapping."""


@cache
def measured_calibration_factors() -> Mapping[str, CalibrationFactors]:
    """Returns the factors of each rule; empty if no saving was ever measured after a fix."""
    text = files(__package__ or "").joinpath("calibration.json").read_text(encoding="utf-8")
    told = json.loads(text)
    return MappingProxyType(
        {rule: CalibrationFactors(**found) for rule, found in told["rules"].items()}
    )


def calibrate_saving(
    amount: SavingAmount,
    rule: str,
    factors_by_rule: Mapping[str, CalibrationFactors],
    *,
    is_bounded: bool,
) -> SavingAmount:
    """Returns the saving with its interval widened by the errors of the rule's earlier estimates.

    Where the replay knows the bound, the idle time of a device (`is_bounded`), it stays. Else it is
    as high as the interval: a repair may remove more than what was counted.
    """
    own = factors_by_rule.get(rule)
    factors = (
        own
        if own is not None and own.pairs >= MIN_VERIFIED_SAVINGS_PER_RULE
        else factors_by_rule.get(ALL_RULES_KEY)
    )
    if factors is None or factors.pairs < MIN_VERIFIED_SAVINGS_PER_RULE:
        return amount
    high = max(amount.high_ms, factors.high * amount.estimate_ms)
    most = amount.upper_ms if is_bounded else amount.step_ms
    high = max(min(high, most), amount.estimate_ms)
    return replace(
        amount,
        low_ms=min(amount.low_ms, factors.low * amount.estimate_ms),
        high_ms=high,
        upper_ms=max(amount.upper_ms, high),
    )
