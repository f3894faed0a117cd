"""Ranks findings by the time that their fixes are expected to save.

With the ledger of the run that is seconds of the run, without it milliseconds of a step.
"""

from typing import Any, Final

from selftime.advice.finding_ids import finding_identity
from selftime.advice.rule_outcomes import Confidence, Finding

CONFIDENCE_WEIGHTS: Final[dict[Confidence, float]] = {"high": 1.0, "medium": 0.8, "low": 0.5}
"""Factor, by confidence, that multiplies a finding's estimated saving to rank it.

These are a judgement. The corpus tells how often findings are right of all together (37 of 37 on a
CPU), not of each confidence. Its promised savings are off by a factor of 1.2 in the median: so a
medium finding counts 0.8, and stands below a high one that promises as much or a little less. A
low one, whose saving may be variation between steps or the work of a lost part of the recording,
counts as one that comes true every other time.
"""


def expected_saving_ms(finding: Finding) -> float | None:
    """Returns the estimated saving weighted by confidence, in ms per step; None if unknown."""
    estimate = finding.saving.estimate_ms
    return None if estimate is None else CONFIDENCE_WEIGHTS[finding.confidence] * estimate


def expected_saving_of_run_s(finding: Finding) -> float | None:
    """Returns the estimated saving of the run weighted by confidence, in s; None if unknown."""
    estimate = finding.saving.run_s
    return None if estimate is None else CONFIDENCE_WEIGHTS[finding.confidence] * estimate


def rank_findings(findings: list[Finding]) -> tuple[Finding, ...]:
    """Returns the findings by expected saving, largest first; unknown savings come last.

    What a finding gives the run counts where it is known, then what it gives a step. What a fix may
    change in the results is no part of the order.
    """
    return tuple(sorted(findings, key=_finding_sort_key))


def _finding_sort_key(finding: Finding) -> tuple[Any, ...]:
    of_run, of_step = expected_saving_of_run_s(finding), expected_saving_ms(finding)
    return (
        of_run is None,
        -(of_run or 0.0),
        of_step is None,
        -(of_step or 0.0),
        -(finding.saving.run_upper_s or 0.0),
        finding_identity(finding),
    )
