"""The whole answer to "what should I change": what `advise` returns and every report draws."""

import json
import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, Literal, TypeAlias

from selftime.advice.base import Checked, Finding, Unknown
from selftime.analysis.steps.bound_by import Regime
from selftime.trace import Trace

__all__ = ["FORMAT", "Advice", "Health", "Joint", "Note", "Regime", "Step", "Verdict"]

FORMAT: Final = "selftime.advice/1"
"""The name and version of the JSON form, which `reports/schemas/advice.json` describes."""

_LONGEST: Final = 2000
"""Characters of a text: nobody who reads an answer wants a name of megabytes from some trace."""

Verdict: TypeAlias = Literal["good", "degraded", "unusable"]


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that limits what the trace can tell."""

    check: str
    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the trace is fit for advice, and what limits it."""

    verdict: Verdict
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """The typical step: medians over the steps that count, None where unknown."""

    count: int = 0
    device_ms: float | None = None
    host_ms: float | None = None
    regime: Regime | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """What all neutral fixes save together; never a sum, so None until it can be replayed."""

    estimate_ms: float | None = None
    speedup: float | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do, what was checked and is not worth it, and what nobody can tell."""

    health: Health
    step: Step = Step()
    findings: tuple[Finding, ...] = ()
    joint: Joint = Joint()
    checked: tuple[Checked, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    trace: Trace | None = field(default=None, compare=False, repr=False, metadata={"inner": True})
    """What it was asked about: a page of it shows the trace too."""

    def _repr_html_(self) -> str:
        from selftime import notebook  # noqa: PLC0415 - a notebook shows advice

        return notebook.html(self)

    def __str__(self) -> str:
        """The answer as a terminal shows it."""
        from selftime.reports.advice.text import as_text  # noqa: PLC0415 - reports show advice

        return as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON values, floats rounded to 6 decimals, keys in one order."""
        return {"format": FORMAT, **_values(self)}

    def to_json(self) -> str:
        """The answer as JSON text: equal answers are equal text, in ASCII."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        return text.replace("\x7f", "\\u007f")  # the one ASCII control that JSON lets through


def _values(value: Any) -> Any:
    if is_dataclass(value):
        told = [f.name for f in fields(value) if not f.metadata.get("inner")]
        return {name: _values(getattr(value, name)) for name in told}
    if isinstance(value, tuple):
        return [_values(element) for element in value]
    if isinstance(value, float):
        return round(value, 6) + 0.0 if math.isfinite(value) else None  # + 0.0: no "-0.0"
    return cut(value) if isinstance(value, str) else value


def cut(text: str) -> str:
    """The text without its middle if it is too long: what closes a quotation stays."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]} … {text[-half:]}"
