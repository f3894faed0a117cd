"""How far promises have been from what repairs gave, and the intervals that follow.

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

from selftime.advice.base import Finding
from selftime.advice.bounds import whole_step

FORMAT: Final = "selftime.calibration/1"
"""The name and version of the file's form."""
POOLED: Final = "*"
"""The entry of all rules together."""
ENOUGH: Final = 10
"""A rule with fewer verified promises has the factors of all rules: of ten, the ends of an 80 %
interval are the smallest and the largest but one."""


@dataclass(frozen=True, slots=True)
class Factors:
    """80 % of what repairs gave lay between these parts of what was promised."""

    low: float
    high: float
    pairs: int
    """How many promises this was measured on."""


@cache
def measured() -> Mapping[str, Factors]:
    """The factors by rule, as they were measured; none if they never were."""
    text = files("selftime.advice").joinpath("calibration.json").read_text(encoding="utf-8")
    told = json.loads(text)
    return MappingProxyType({rule: Factors(**found) for rule, found in told["rules"].items()})


def calibrated(finding: Finding, known: Mapping[str, Factors], *, bounded: bool) -> Finding:
    """The finding with an interval at least as wide as promises of its kind were off.

    Where the saving is `bounded` by what the replay knows, the idle time of a device, the bound
    stays. Else it is as high as the interval: a repair may take away more than what was counted.
    """
    saving = finding.saving
    own = known.get(finding.rule)
    factors = own if own is not None and own.pairs >= ENOUGH else known.get(POOLED)
    if saving.estimate_ms is None or factors is None or factors.pairs < ENOUGH:
        return finding
    estimate = saving.estimate_ms
    low = min(_or(saving.low_ms, estimate), factors.low * estimate)
    high = max(_or(saving.high_ms, estimate), factors.high * estimate)
    most = _or(saving.upper_ms, high) if bounded else whole_step(saving) or estimate
    high = max(min(high, most), estimate)
    upper = None if saving.upper_ms is None else max(saving.upper_ms, high)
    return replace(finding, saving=replace(saving, low_ms=low, high_ms=high, upper_ms=upper))


def _or(value: float | None, other: float) -> float:
    return other if value is None else value
