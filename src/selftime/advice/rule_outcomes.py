"""Defines a rule's outcomes: a finding, a cause that was ruled out, or one that needs more data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from selftime.advice.replay import Change
from selftime.advice.savings.claims import SavingClaim
from selftime.advice.savings.saving import Saving
from selftime.analysis.source_sites import EVIDENCE_OF_EXECUTING_LINE
from selftime.names.notebook_cells import place_text
from selftime.units import Unit, truncate_middle

LineEvidence: TypeAlias = Literal["stamp", "stack", "static", "definition", "module", "unknown"]
Confidence: TypeAlias = Literal["high", "medium", "low"]
FixSemantics: TypeAlias = Literal["neutral", "numerics", "training"]

FIX_SEMANTICS: Final[tuple[FixSemantics, ...]] = ("neutral", "numerics", "training")
"""What a fix may change: nothing in the results, their rounding, or how the model learns."""

EVIDENCE_OF_LINE: Final = (*EVIDENCE_OF_EXECUTING_LINE, "static")
"""Values of `how` for lines that ran, and are not only where a function is defined."""


@dataclass(frozen=True, slots=True)
class Where:
    """A source location in the user's program that a finding is about, and how it was found."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    how: LineEvidence = "unknown"

    def __str__(self) -> str:
        """Returns `file:line in function` in backticks, or `line unknown` without backticks."""
        if self.file is None:
            return "line unknown"
        at = place_text(self.file, self.line)
        whole = at if self.function is None else f"{at} in {truncate_middle(self.function)}"
        quotable = whole.replace("`", "'")
        return f"`{quotable}`"


def where_from_row(row: Mapping[str, Any] | None) -> Where:
    """Returns the source line that a row's columns name; an unknown line if they name no file."""
    if row is None or row.get("file") is None:
        return Where()
    is_line = row["how"] in EVIDENCE_OF_LINE
    how: LineEvidence = row["how"] if is_line else "definition"
    return Where(row["file"], row["line"], row["function"], how)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A number measured in a trace that supports a finding, with the ids of the measured slices."""

    metric: str
    value: float | None
    unit: Unit | Literal["ms"]
    events: tuple[int, ...] = ()
    """Ids of some of the slices, as examples: mostly the longest."""
    slices: NDArray[np.integer] | None = field(
        default=None, compare=False, repr=False, metadata={"inner": True}
    )
    """Ids of all slices that the number was measured on; None if only examples are known."""


@dataclass(frozen=True, slots=True)
class Argument:
    """The argument that a fix sets, which a framework may have under another name."""

    of: Literal["optimizer", "loader", "loop"]
    """What takes it: the constructor of an optimizer or of a DataLoader, or the loop as a whole."""
    name: str
    """Name of the constructor's argument; for a loop one of `framework_arguments`."""
    value: str
    """Its value as source code."""
    class_name: str | None = None
    """Class of the object, if known."""


@dataclass(frozen=True, slots=True)
class Fix:
    """What to change in the program, in words and, if possible, as code."""

    text: str
    code: str | None = None
    argument: Argument | None = field(default=None, metadata={"inner": True})
    """The argument that the code sets, if the fix is to set one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause of lost time that is worth a fix: its source line, saving, confidence and fix.

    Title, evidence and fix are one paragraph each; names from the trace stand in backticks.
    """

    rule: str = ""
    """Name of the rule; empty until the rule has run."""
    id: str = ""
    """Id that selects the finding in `advise --finding`; empty until all findings are known."""
    covers: tuple[str, ...] = ()
    """Codes of the bottlenecks that the finding is about; () means all bottlenecks of its rule."""
    title: str
    where: Where
    count_per_step: float | None = None
    saving: Saving = field(default_factory=Saving)
    """Time that the fix saves; computed from `claim` after the rule has run."""
    confidence: Confidence
    semantics: FixSemantics = "neutral"
    evidence: tuple[Evidence, ...] = ()
    fix: Fix
    claim: SavingClaim | None = field(default=None, compare=False, metadata={"inner": True})
    """What the fix removes or saves, by the rule, to compute `saving` from; None if unknown."""
    changes: tuple[Change, ...] = field(default=(), metadata={"inner": True})
    """Changes to the recorded program that the fix makes, to simulate all fixes together."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A possible cause of lost time that was checked and is not worth a fix."""

    rule: str = field(default="", kw_only=True)
    reason: str
    max_cause_ms: float | None = field(default=None, metadata={"inner": True})
    """Longest time that the cause takes of a typical step as recorded, in ms; None if unknown."""
    is_slowed: bool = field(default=True, kw_only=True, metadata={"inner": True})
    """Whether recording slows what takes the time `max_cause_ms`; False for the work of devices."""
    upper_ms: float | None = field(default=None, kw_only=True)
    """Most that a fix could save of a step without profiler, in ms; None if unknown.

    Computed from `max_cause_ms` after the rule has run."""
    run_upper_s: float | None = field(default=None, kw_only=True, metadata={"inner": True})
    """Most that a fix could save of the whole run, in s; None unless the rule is about the run."""
    is_absent: bool = field(default=False, kw_only=True, metadata={"inner": True})
    """Whether the trace does not show the cause at all; reports then only count it."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A possible cause of lost time that the recording cannot show, and what to record for it."""

    rule: str = field(default="", kw_only=True)
    needs: str


Outcome: TypeAlias = Finding | Checked | Unknown
