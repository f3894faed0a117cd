"""Defines a rule: a function that checks a trace for one possible cause of lost time.

A rule is one file. Its name is the file's, its page is the module's docstring, its check reads
views and yields outcomes. Drawings on the page are run as tests.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from textwrap import dedent
from typing import Any, Final, TypeAlias

from selftime.advice.rule_outcomes import (
    FIX_SEMANTICS,
    Argument,
    Checked,
    Confidence,
    Evidence,
    Finding,
    Fix,
    FixSemantics,
    LineEvidence,
    Outcome,
    Unknown,
    Where,
    where_from_row,
)
from selftime.advice.savings.calibration import NO_CALIBRATION_FACTORS, CalibrationFactors
from selftime.advice.savings.saving import Saving
from selftime.advice.savings.saving_from_claim import outcome_with_saving
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.recording_requirements import RecordingNeed
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.trace import Trace

__all__ = [
    "FIX_SEMANTICS",
    "RULE_PAGE_SECTIONS",
    "Argument",
    "Checked",
    "Confidence",
    "Evidence",
    "Finding",
    "Fix",
    "FixSemantics",
    "LineEvidence",
    "Outcome",
    "Rule",
    "Saving",
    "Unknown",
    "Where",
    "rule",
    "where_from_row",
]

RULE_PAGE_SECTIONS: Final = ("What it means", "Why it costs", "What to do", "Fires on", "Silent on")
"""Headings of the sections of a rule's documentation page, in order."""

STEPS_WITH_DURATION: Final = "steps whose duration is known"
"""What a trace lacks in which no step took time that is known."""

MORE_STEPS: Final = "record more with `--steps` and `--hold`"
"""What a user can do about too few recorded steps."""

RuleCheck: TypeAlias = (
    Callable[[Trace], Iterator[Outcome]] | Callable[[Trace, Ranks], Iterator[Outcome]]
)
"""The check of a rule: a function of one trace, or of one rank's trace and the data of all
ranks."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A check of a trace for one cause of lost time; its module has the rule's name and text."""

    name: str
    doc: str
    covers: tuple[str, ...]
    needs: tuple[RecordingNeed, ...]
    check: RuleCheck
    broad: bool = False
    """Whether the fix concerns the whole program; its saving then counts only what other fixes
    leave."""
    min_steps: int = 1
    """Smallest number of recorded steps from which the rule can tell that its cause is absent."""

    @property
    def uses_all_ranks(self) -> bool:
        """Returns whether the check takes the data of all ranks of a job, besides one trace."""
        return len(inspect.signature(self.check).parameters) > 1

    def __call__(
        self,
        trace: Trace,
        ranks: Ranks | None = None,
        *,
        factors_by_rule: Mapping[str, CalibrationFactors] = NO_CALIBRATION_FACTORS,
    ) -> tuple[Outcome, ...]:
        """Runs the rule on a trace; returns findings with savings, or why nothing is worth a fix.

        Args:
            trace: The trace of one process.
            ranks: What it and those of the other ranks of its job tell; None of one that is alone.
            factors_by_rule: How far estimates of each rule have been off.
        """
        check: Any = self.check
        outcomes = check(trace, ranks) if self.uses_all_ranks else check(trace)
        return tuple(
            outcome_with_saving(
                trace, self._with_rule_name(self._known_absence(trace, outcome)), factors_by_rule
            )
            for outcome in outcomes
        )

    def _known_absence(self, trace: Trace, outcome: Outcome) -> Outcome:
        """Returns that the cause is unknown if it is absent from too few steps, else `outcome`."""
        if not (isinstance(outcome, Checked) and outcome.is_absent):
            return outcome
        if trace.slices.height and "ledger" not in self.needs and step_statistics(trace) is None:
            return Unknown(STEPS_WITH_DURATION)
        if self.min_steps <= 1:
            return outcome
        recorded = steps_with_counted_flags(trace).height
        if recorded >= self.min_steps:
            return outcome
        verb = "was" if recorded == 1 else "were"
        return Unknown(f"{self.min_steps} steps, and {recorded} {verb} recorded: {MORE_STEPS}")

    @property
    def title(self) -> str:
        return self.doc.partition("\n")[0]

    @property
    def sections(self) -> dict[str, str]:
        """The text of each section of the rule's documentation page, by heading."""
        _, *parts = ("\n" + self.doc).split("\n## ")
        return {
            head.strip(): text.strip("\n") for head, _, text in (p.partition("\n") for p in parts)
        }

    def drawings(self, section: str) -> list[str]:
        """Returns the example traces drawn as indented text in a section of the rule's page."""
        blocks: list[list[str]] = [[]]
        for line in self.sections[section].splitlines():
            if line.startswith("    "):
                blocks[-1].append(line)
            elif line.strip() or blocks[-1]:
                blocks.append([])
        return [dedent("\n".join(block)) for block in blocks if block]

    def _with_rule_name(self, outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Finding):
            return replace(outcome, rule=self.name)
        covers = outcome.covers or self.covers
        if not set(covers) <= set(self.covers):
            raise ValueError(f"the rule `{self.name}` covers {self.covers}, not all of {covers}")
        return replace(outcome, rule=self.name, covers=covers)


def rule(
    *,
    covers: tuple[str, ...],
    needs: tuple[RecordingNeed, ...] = (),
    broad: bool = False,
    min_steps: int = 1,
) -> Callable[[RuleCheck], Rule]:
    """Returns a decorator that makes a module's check function a `Rule`.

    `covers` names entries of the catalogue of bottlenecks. `needs` names what a recording must
    contain; if it does not, the rule is not run and stands under *cannot tell*. The fix of a
    `broad` rule is for the program as a whole: its findings are priced with all others fixed. A
    cause that is absent from fewer than `min_steps` recorded steps stands under *cannot tell*.
    """

    def make_rule(check: RuleCheck) -> Rule:
        module = sys.modules[check.__module__]
        name = module.__name__.rpartition(".")[2]
        page = inspect.getdoc(module) or ""
        return Rule(name, page, covers, needs, check, broad, min_steps)

    return make_rule
