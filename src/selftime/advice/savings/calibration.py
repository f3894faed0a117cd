"""Widens the intervals of estimated savings by the errors that earlier estimates had.

`calibration.json` holds, for each rule, for the rules of each chapter of the bottleneck catalogue,
and for all of them, the factors between which 80 % of the achieved savings lay, as parts of the
promised ones. `scripts/calibrate.py` makes it from repairs of other people's programs, and of those
programs of the corpus that are held out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from selftime.advice.savings.saving import SavingAmount

FORMAT: Final = "selftime.calibration/2"
"""Name and version of the format of `calibration.json`."""
ALL_RULES_KEY: Final = "*"
"""Key in `calibration.json` under which the error factors of all rules together are."""
MIN_VERIFIED_SAVINGS: Final = 10
"""Smallest number of measured savings of a rule or chapter for it to have its own error factors."""


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
    """Returns the factors of each rule and of all; empty if no saving was ever measured.

    A rule has those of its own repairs if there are enough, else those of its chapter's; a rule of
    a chapter with too few has none of its own.
    """
    text = files(__package__ or "").joinpath("calibration.json").read_text(encoding="utf-8")
    told = json.loads(text)
    found = {key: CalibrationFactors(**one) for key, one in told["factors"].items()}
    return MappingProxyType(factors_by_rule(found, told["chapters"]))


def factors_by_rule(
    found: Mapping[str, CalibrationFactors], chapters: Mapping[str, str]
) -> dict[str, CalibrationFactors]:
    """Returns the factors that hold for each rule of `chapters`, which maps rules to chapters.

    `found` has factors by rule, by chapter and under `*`; those of too few repairs count for none.
    """
    enough = {key: one for key, one in found.items() if one.pairs >= MIN_VERIFIED_SAVINGS}
    of_rules = {rule: enough.get(rule, enough.get(chapter)) for rule, chapter in chapters.items()}
    told = {rule: one for rule, one in of_rules.items() if one is not None}
    return told | {key: one for key, one in enough.items() if key == ALL_RULES_KEY}


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
    factors = factors_by_rule.get(rule, factors_by_rule.get(ALL_RULES_KEY))
    if factors is None:
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
