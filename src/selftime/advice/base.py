"""What a rule is, and the three things that it can say: a finding, checked, or unknown.

A rule is one file. Its name is the file's, its page is the module's docstring, its check reads
views and yields outcomes. Drawings on the page are run as tests.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from textwrap import dedent
from typing import Any, Final, Literal, TypeAlias

from selftime.advice.replay import Change
from selftime.analysis.ranks.ranks import Ranks
from selftime.analysis.requirements import Need
from selftime.analysis.sites import EXECUTING
from selftime.trace import Trace
from selftime.units import Unit

How: TypeAlias = Literal["stamp", "stack", "static", "definition", "module", "unknown"]
Method: TypeAlias = Literal["replay", "model", "none"]
Confidence: TypeAlias = Literal["high", "medium", "low"]
Semantics: TypeAlias = Literal["neutral", "numerics", "training"]

SECTIONS: Final = ("What it means", "Why it costs", "What to do", "Fires on", "Silent on")
"""The sections of a rule's page, in order."""

SEMANTICS: Final[tuple[Semantics, ...]] = ("neutral", "numerics", "training")
"""What a fix may change, from nothing to how the model learns: the order of the ranking."""


@dataclass(frozen=True, slots=True)
class Where:
    """The line of the user's code that a finding is about, and how it is known."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    how: How = "unknown"

    def __str__(self) -> str:
        """As a sentence names it: quoted, as all that comes from the trace."""
        if self.file is None:
            return "line unknown"
        at = self.file if self.line is None else f"{self.file}:{self.line}"
        whole = at if self.function is None else f"{at} in {self.function}"
        quotable = whole.replace("`", "'")
        return f"`{quotable}`"


def where(row: Mapping[str, Any] | None) -> Where:
    """The line in a row's columns file, line, function and how; unknown where they are null."""
    if row is None or row.get("file") is None:
        return Where()
    how: How = row["how"] if row["how"] in EXECUTING else "definition"
    return Where(row["file"], row["line"], row["function"], how)


@dataclass(frozen=True, slots=True)
class Saving:
    """Milliseconds of a step that the fix gives back; None where nobody can know."""

    estimate_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    upper_ms: float | None = None
    speedup: float | None = None
    method: Method = "none"

    def __post_init__(self) -> None:
        known = [self.low_ms, self.estimate_ms, self.high_ms, self.upper_ms]
        values = [0.0, *(value for value in known if value is not None)]
        if values != sorted(values):
            raise ValueError(f"expected 0 <= low <= estimate <= high <= upper, got {known}")
        if (self.estimate_ms is None) != (self.method == "none"):
            raise ValueError("a method comes with an estimate, and an estimate with a method")

    @classmethod
    def of_step(
        cls,
        step_ms: float,
        estimate_ms: float,
        *,
        method: Method,
        low_ms: float = 0.0,
        high_ms: float | None = None,
        upper_ms: float | None = None,
    ) -> "Saving":
        """A saving in a step of `step_ms`, with the speed-up that it means.

        >>> Saving.of_step(100.0, 20.0, method="model", high_ms=30.0, upper_ms=30.0).speedup
        1.25
        """
        left = step_ms - estimate_ms
        speedup = step_ms / left if left > 0 else None
        return cls(estimate_ms, low_ms, high_ms, upper_ms, speedup, method)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured number behind a finding, and the slices that it was measured on."""

    metric: str
    value: float | None
    unit: Unit | Literal["ms"]
    events: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Fix:
    """What to change, in words, and as code where that is possible."""

    text: str
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing worth changing: where, what it saves, how sure, and how.

    Title, evidence and fix are one paragraph each; names from the trace stand in backticks.
    """

    rule: str = ""
    """The rule's name; filled in when the rule is called."""
    id: str = ""
    """What it is asked for by, alone; filled in when all findings are known."""
    covers: tuple[str, ...] = ()
    """Entries of the catalogue; the rule's own if it does not say which of them."""
    title: str
    where: Where
    count_per_step: float | None = None
    saving: Saving
    confidence: Confidence
    semantics: Semantics = "neutral"
    evidence: tuple[Evidence, ...] = ()
    fix: Fix
    changes: tuple[Change, ...] = field(default=(), metadata={"inner": True})
    """What the fix changes in the recorded program, for the replay of all fixes at once."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A cause that was looked at and is not worth a change."""

    rule: str = field(default="", kw_only=True)
    reason: str
    upper_ms: float | None = None
    """The most that a fix could save in a step, if known."""
    is_absent: bool = field(default=False, kw_only=True, metadata={"inner": True})
    """Whether nothing of its kind is in the trace: for people it is counted, not listed."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A cause that this recording cannot show, and what would show it."""

    rule: str = field(default="", kw_only=True)
    needs: str


Outcome: TypeAlias = Finding | Checked | Unknown
Check: TypeAlias = (
    Callable[[Trace], Iterator[Outcome]] | Callable[[Trace, Ranks], Iterator[Outcome]]
)
"""A check of a trace, or of the trace of one rank beside what those of all ranks tell."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A check, named after its file and documented by that file's docstring."""

    name: str
    doc: str
    covers: tuple[str, ...]
    needs: tuple[Need, ...]
    check: Check
    broad: bool = False
    """Whether its fix speeds up whatever other causes leave, and may claim only that."""

    @property
    def across(self) -> bool:
        """Whether it looks at the ranks of a job, too."""
        return len(inspect.signature(self.check).parameters) > 1

    def __call__(self, trace: Trace, ranks: Ranks | None = None) -> tuple[Outcome, ...]:
        """Every outcome, signed with the rule's name.

        Args:
            trace: The trace of one process.
            ranks: What it and those of the other ranks of its job tell; None of one that is alone.
        """
        check: Any = self.check
        told = check(trace, ranks) if self.across else check(trace)
        return tuple(self._signed(outcome) for outcome in told)

    @property
    def title(self) -> str:
        return self.doc.partition("\n")[0]

    @property
    def sections(self) -> dict[str, str]:
        """The page's sections by heading."""
        _, *parts = ("\n" + self.doc).split("\n## ")
        return {
            head.strip(): text.strip("\n") for head, _, text in (p.partition("\n") for p in parts)
        }

    def drawings(self, section: str) -> list[str]:
        """The traces drawn in one section: its indented blocks."""
        blocks: list[list[str]] = [[]]
        for line in self.sections[section].splitlines():
            if line.startswith("    "):
                blocks[-1].append(line)
            elif line.strip() or blocks[-1]:
                blocks.append([])
        return [dedent("\n".join(block)) for block in blocks if block]

    def _signed(self, outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Finding):
            return replace(outcome, rule=self.name)
        covers = outcome.covers or self.covers
        if not set(covers) <= set(self.covers):
            raise ValueError(f"the rule `{self.name}` covers {self.covers}, not all of {covers}")
        return replace(outcome, rule=self.name, covers=covers)


def rule(
    *, covers: tuple[str, ...], needs: tuple[Need, ...] = (), broad: bool = False
) -> Callable[[Check], Rule]:
    """Make the check of a module its rule.

    `covers` names entries of the catalogue of bottlenecks. `needs` names what a recording must
    hold; if it does not, the rule is not asked and stands under *cannot tell*. The fix of a `broad`
    rule is for the program as a whole: its findings are priced with all others fixed.
    """

    def declare(check: Check) -> Rule:
        module = sys.modules[check.__module__]
        name = module.__name__.rpartition(".")[2]
        return Rule(name, inspect.getdoc(module) or "", covers, needs, check, broad)

    return declare
