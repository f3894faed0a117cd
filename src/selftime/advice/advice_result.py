"""Defines the advice on a trace, which `advise` returns and every report shows."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final

from selftime import units
from selftime.advice.account.account_rows import StepAccount
from selftime.advice.account.job_account import JobAccount
from selftime.advice.rule_outcomes import Checked, Evidence, Finding, Fix, Unknown
from selftime.analysis.health import HealthVerdict
from selftime.analysis.steps.bound_by import BoundBy
from selftime.trace import Trace

__all__ = [
    "FORMAT",
    "Advice",
    "BoundBy",
    "Health",
    "HealthVerdict",
    "JointSaving",
    "Note",
    "RunTime",
    "TypicalStep",
]

FORMAT: Final = "selftime.advice/1"
"""Name and version of the advice's JSON format, described in `reports/schemas/advice.json`."""


@dataclass(frozen=True, slots=True)
class Note:
    """A defect of the trace that limits the advice, as a failed check of the trace found it."""

    check: str
    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """The verdict on whether a trace's data are good enough for advice, and the trace's defects."""

    verdict: HealthVerdict
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class TypicalStep:
    """The typical step: number of measured steps, median device and host time, limiting factor."""

    count: int = 0
    device_ms: float | None = None
    host_ms: float | None = None
    regime: BoundBy | None = None


@dataclass(frozen=True, slots=True)
class JointSaving:
    """What all fixes save together: ms per step and speed-up; None where not computed."""

    estimate_ms: float | None = None
    speedup: float | None = None
    run_s: float | None = None
    """Seconds of the whole run that all fixes save together; None without the run's ledger."""


@dataclass(frozen=True, slots=True)
class RunTime:
    """The whole run that a trace was recorded in, and which of its steps the trace represents."""

    wall_s: float
    """The wall time of the run, in seconds."""
    kind: str | None = None
    """The kind of steps that were recorded; None if no step was."""
    steps: int | None = None
    """The number of steps that the recorded ones represent; None if no step was recorded."""
    covered_s: float | None = None
    """What these steps take of the run, in seconds; None if no step was recorded."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on a trace: findings with savings, and causes of lost time without a finding."""

    health: Health
    step: TypicalStep = TypicalStep()
    account: StepAccount | None = field(default=None, kw_only=True)
    """What the time of a step was spent on; None without a usable step."""
    job: JobAccount | None = field(default=None, kw_only=True)
    """What a step of all ranks was spent on; None unless the advice is on a job."""
    findings: tuple[Finding, ...] = ()
    joint: JointSaving = JointSaving()
    checked: tuple[Checked, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    run: RunTime | None = None
    """The whole run, as its ledger records it; None if there is no ledger."""
    trace: Trace | None = field(default=None, compare=False, repr=False, metadata={"inner": True})
    """The trace that the advice is about, for reports that also show the trace."""
    selected_rule_or_finding: str | None = field(default=None, metadata={"inner": True})
    """The one rule name or finding id that the advice is limited to; None if it is not limited."""

    def _repr_html_(self) -> str:
        from selftime import notebook  # noqa: PLC0415 - a notebook shows advice

        return notebook.notebook_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython's protocol
        printer.text(str(self))

    def __str__(self) -> str:
        """Returns the advice as the text that the terminal shows."""
        from selftime.reports.advice.text import as_text  # noqa: PLC0415 - reports show advice

        return as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Returns the advice as JSON values, floats rounded to 6 decimals, keys in fixed order."""
        return {"format": FORMAT, **_to_json_value(self)}

    def to_json(self) -> str:
        """Returns the advice as ASCII JSON text; equal advice gives equal text."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        return text.replace("\x7f", "\\u007f")  # the one ASCII control that JSON lets through


def _to_json_value(value: Any) -> Any:
    if is_dataclass(value):
        told = [f for f in fields(value) if not f.metadata.get("inner")]
        return {
            f.metadata.get("json_key", f.name): _to_json_value(
                _in_words_of_format(getattr(value, f.name), f.metadata.get("json_words", {}))
            )
            for f in told
        }
    if isinstance(value, tuple):
        return [_to_json_value(element) for element in value]
    if isinstance(value, float):
        return round(value, 6) + 0.0 if math.isfinite(value) else None  # + 0.0: no "-0.0"
    return units.truncate_middle(value) if isinstance(value, str) else value


def _in_words_of_format(value: Any, words: Mapping[str, str]) -> Any:
    """Returns a value in the words that the format has for it; several in one word are one."""
    if not words:
        return value
    if isinstance(value, tuple):
        return tuple(dict.fromkeys(words.get(word, word) for word in value))
    return words.get(value, value)


def with_bounded_texts(value: Any) -> Any:
    """Returns advice, or a part of it, in which no text but a place in a file is long.

    A name in a trace may have any length, and a sentence that quotes it would have it too.
    """
    if isinstance(value, str):
        return units.truncate_middle(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(with_bounded_texts(element) for element in value)
    if not isinstance(value, Finding | Evidence | Fix | Checked | Unknown | Health | Note):
        return value
    told = {f.name: getattr(value, f.name) for f in fields(value) if not f.metadata.get("inner")}
    changed = {name: with_bounded_texts(old) for name, old in told.items()}
    return replace(value, **{k: new for k, new in changed.items() if new is not told[k]})
