"""The words that every report of advice uses, so that text, Markdown and SARIF say the same."""

from pathlib import PurePath, PurePosixPath
from typing import Final

from selftime import units
from selftime.advice.answer import Advice, Step, Verdict
from selftime.advice.base import Checked, Confidence, Evidence, Finding, Saving, Semantics, Where
from selftime.analysis.steps.bound_by import PHRASE
from selftime.reports.plain import plain
from selftime.units import milliseconds_text as milliseconds

DO_THIS: Final = "Do this"
CHECKED: Final = "Checked, not worth it"
CANNOT_TELL: Final = "Cannot tell"
NOTHING_TO_DO: Final = "Nothing was found that is worth a change."

HEALTH: Final[dict[Verdict, str]] = {
    "good": "good: the trace is fit for advice",
    "degraded": "degraded: read the numbers with the notes below",
    "unusable": "unusable: no advice is given on this trace",
}
_SEMANTICS: Final[dict[Semantics, str]] = {
    "neutral": "results stay the same",
    "numerics": "results change by rounding",
    "training": "training may converge differently",
}
_CONFIDENCE: Final[dict[Confidence, str]] = {
    "high": "high confidence",
    "medium": "medium confidence",
    "low": "low confidence",
}


def file_below(file: str, root: str | None) -> str:
    """The file as seen from `root`, if it lies below it."""
    if root is None:
        return file
    below = PurePath(file)
    if not below.is_relative_to(root):
        return file
    return str(PurePosixPath(below.relative_to(root)))


def below(text: str, root: str | None) -> str:
    """A text in which files below `root` are named as seen from there."""
    return text if root is None else text.replace(f"{root.rstrip('/')}/", "")


def place_text(where: Where, root: str | None = None) -> str:
    """The line as an editor opens it, and the function around it."""
    if where.file is None:
        return "line unknown" if where.function is None else f"in {plain(where.function)}"
    inside = "" if where.function is None else f" in {plain(where.function)}"
    nearby = " (where it is defined)" if where.how == "definition" else ""
    return f"{line_text(where, root)}{inside}{nearby}"


def line_text(where: Where, root: str | None = None) -> str:
    """File and line alone; nothing where the file is unknown."""
    line = "" if where.line is None else f":{where.line}"
    return "" if where.file is None else f"{plain(file_below(where.file, root))}{line}"


def saving_text(saving: Saving) -> str:
    """The estimate with its interval; a saving that nobody can know has no number."""
    return " ".join(saving_parts(saving))


def saving_parts(saving: Saving) -> tuple[str, ...]:
    """The estimate, its interval and the speed-up; joined by blanks they are one sentence."""
    if saving.estimate_ms is None:
        if saving.upper_ms is None:
            return ("saving unknown",)
        return (f"saves at most {milliseconds(saving.upper_ms)} a step",)
    parts = [f"saves {milliseconds(saving.estimate_ms)} a step"]
    if saving.low_ms is not None and saving.high_ms is not None:
        parts.append(f"({milliseconds(saving.low_ms)} to {milliseconds(saving.high_ms)})")
    if saving.speedup is not None:
        parts[-1] += ","
        parts.append(speedup_text(saving.speedup))
    return tuple(parts)


def speedup_text(speedup: float) -> str:
    return f"{speedup:.2f} times as fast"


def sureness_text(finding: Finding) -> str:
    return f"{_CONFIDENCE[finding.confidence]}, {_SEMANTICS[finding.semantics]}"


def evidence_text(evidence: Evidence, root: str | None = None) -> str:
    return f"{metric_text(evidence, root)}: {value_text(evidence)}"


def metric_text(evidence: Evidence, root: str | None = None) -> str:
    """What was measured."""
    return plain(below(evidence.metric, root))


def value_text(evidence: Evidence) -> str:
    """What was measured, with its unit."""
    value, unit = evidence.value, evidence.unit
    if unit == "ms":
        return units.text(None, "ns") if value is None else milliseconds(value)
    return units.text(value, unit)


def checked_text(checked: Checked, root: str | None = None) -> str:
    reason = below(checked.reason, root)
    if checked.upper_ms is None:
        return plain(reason)
    return f"{plain(reason)} (at most {milliseconds(checked.upper_ms)} a step)"


def weighed(advice: Advice) -> tuple[Checked, ...]:
    """What was checked and found, and is not worth a change."""
    return tuple(checked for checked in advice.checked if not checked.is_absent)


def absent_text(advice: Advice) -> str | None:
    """How many more causes were looked for and not found; JSON lists them."""
    count = len({checked.rule for checked in advice.checked if checked.is_absent})
    if not count:
        return None
    more = f"and {count} other" if weighed(advice) else f"{count}"
    causes = "cause was" if count == 1 else "causes were"
    return f"{more} {causes} checked and not found in this trace"


def step_text(step: Step) -> str:
    """The typical step in one line; what is unknown is left out."""
    parts = []
    if step.host_ms is not None:
        parts.append(f"host {milliseconds(step.host_ms)}")
    if step.device_ms is not None:
        parts.append(f"device {milliseconds(step.device_ms)}")
    if step.regime is not None:
        parts.append(f"bound by {PHRASE[step.regime]}")
    if not step.count:
        return ", ".join(["no steps marked", *parts])
    return ", ".join([*parts, f"median of {step.count}" if step.count > 1 else "one step"])


def joint_text(advice: Advice) -> str | None:
    """What all fixes save together, where there are several."""
    if len(advice.findings) < 2:
        return None
    if advice.joint.estimate_ms is None:
        return "These savings overlap; they do not add up."
    return f"Together they save {milliseconds(advice.joint.estimate_ms)} a step."


def by_need(advice: Advice, root: str | None = None) -> dict[str, list[str]]:
    """What the recording lacks, each with the rules that wait for it."""
    needs: dict[str, list[str]] = {}
    for unknown in advice.unknown:
        needs.setdefault(below(unknown.needs, root), []).append(unknown.rule)
    return needs
