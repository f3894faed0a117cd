"""Writes the sentences about advice that the text, Markdown and SARIF reports have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath
from typing import Final

from selftime import units
from selftime.advice.advice_result import Advice, HealthVerdict, TypicalStep
from selftime.advice.rule_definition import (
    Checked,
    Confidence,
    Evidence,
    Finding,
    FixSemantics,
    Saving,
    Unknown,
    Where,
)
from selftime.analysis.recording_requirements import REQUIREMENT_BY_NEED
from selftime.analysis.steps.bound_by import BOUND_BY_PHRASES
from selftime.names.notebook_cells import place_text
from selftime.reports.plain import plain
from selftime.trace import Trace
from selftime.units import milliseconds_text as milliseconds
from selftime.units import truncate_middle

FINDINGS_TITLE: Final = "Do this"
"""Title of the section of findings."""
CHECKED_CAUSES_TITLE: Final = "Checked, not worth it"
"""Title of the section of possible causes of lost time that are not worth a fix."""
MISSING_DATA_TITLE: Final = "Cannot tell"
"""Title of the section of rules that could not be checked, as the recording lacks data."""
NO_FINDINGS_SENTENCE: Final = "Nothing was found that is worth a change."
"""Sentence for advice without findings."""
NO_CURE_SENTENCE: Final = "No rule knows what would shorten this step; this is what it spends:"
"""Sentence for advice without findings on a step that is mostly unexplained."""
NO_FINDINGS_OF_RUN_SENTENCE: Final = (
    "Nothing was found in the account of the run that is worth a change; no step was recorded."
)
"""Sentence for advice without findings on a run of which there is no recording."""

HEALTH_VERDICT_SENTENCES: Final[dict[HealthVerdict, str]] = {
    "good": "good: the trace is fit for advice",
    "degraded": "degraded: read the numbers with the notes below",
    "unusable": "unusable: no advice is given on this trace",
}
"""Sentence for each verdict on the quality of the trace."""
FIX_EFFECT_TEXT: Final[dict[FixSemantics, str]] = {
    "neutral": "results stay the same",
    "numerics": "results change by rounding",
    "training": "training may converge differently",
}
"""Text for what a fix does to the program's results."""
_CONFIDENCE_TEXT: Final[dict[Confidence, str]] = {
    "high": "high confidence",
    "medium": "medium confidence",
    "low": "low confidence",
}
"""Text for each degree of confidence in a finding."""

_SMALLEST_SHOWN_MS: Final = 0.005
"""Smallest time in ms that a change could save measurably."""
_MIN_LISTED_SHARE: Final = 0.001
"""Smallest share of the step, or of the run, that a cause which is not worth a fix must take at
most to be listed; smaller ones are counted."""


def relative_file(file: str, root: str | None) -> str:
    """Returns the file's path relative to the folder `root`; unchanged if outside `root`."""
    if root is None:
        return file
    path = PurePath(file)
    if not path.is_relative_to(root):
        return file
    return str(PurePosixPath(path.relative_to(root)))


def file_and_line_text(file: str, line: int | None, root: str | None = None) -> str:
    """Returns `file:line` for a user, or `file` if no line is known, relative to `root`.

    >>> file_and_line_text("/job/train.py", 7, "/job")
    'train.py:7'
    >>> file_and_line_text("cell 3", 8, "/job")
    'cell 3, line 8'
    """
    return place_text(plain(relative_file(file, root)), line)


def with_relative_files(text: str, root: str | None) -> str:
    """Returns the text with each path below the folder `root` made relative to `root`."""
    return text if root is None else text.replace(f"{root.rstrip('/')}/", "")


def source_location_text(location: Where, root: str | None = None) -> str:
    """Returns a source location as `file:line in function`; editors can open `file:line`."""
    function = f"in {truncate_middle(plain(location.function or ''))}"
    if location.file is None:
        return "line unknown" if location.function is None else function
    function = "" if location.function is None else f" {function}"
    note = " (where it is defined)" if location.how == "definition" else ""
    return f"{source_line_text(location, root)}{function}{note}"


def source_line_text(location: Where, root: str | None = None) -> str:
    """Returns a source location as `file:line`; an empty text if the file is unknown."""
    return "" if location.file is None else file_and_line_text(location.file, location.line, root)


def saving_text(saving: Saving) -> str:
    """Returns the estimated saving with its interval; `saving unknown` if there is no estimate."""
    return " ".join(saving_text_parts(saving))


def saving_text_parts(saving: Saving) -> tuple[str, ...]:
    """Returns a saving as texts, to be joined by spaces: of a step, its speed-up, of the run."""
    of_step, of_run = _saving_of_step_parts(saving), _saving_of_run_parts(saving)
    if not of_run:
        return of_step or ("saving unknown",)
    if not of_step:
        return of_run
    return (*of_step[:-1], f"{of_step[-1]};", *of_run)


def _saving_of_step_parts(saving: Saving) -> tuple[str, ...]:
    """Returns estimate, interval and speed-up of a step as texts; an empty tuple if unknown."""
    if saving.estimate_ms is None:
        if saving.upper_ms is None:
            return ()
        return (f"saves at most {milliseconds(saving.upper_ms)} a step",)
    parts = [f"saves {milliseconds(saving.estimate_ms)} a step"]
    if saving.low_ms is not None and saving.high_ms is not None:
        parts.append(f"({units.time_range_text(saving.low_ms * 1e6, saving.high_ms * 1e6)})")
    if saving.speedup is not None:
        parts[-1] += ","
        parts.append(speedup_text(saving.speedup))
    return tuple(parts)


def _saving_of_run_parts(saving: Saving) -> tuple[str, ...]:
    """Returns estimate and interval of the whole run as texts; an empty tuple if unknown."""
    is_alone = saving.estimate_ms is None and saving.upper_ms is None
    verb = "saves " if is_alone else ""
    if saving.run_s is None:
        if saving.run_upper_s is None:
            return ()
        return (f"{verb}at most {_seconds(saving.run_upper_s)} of the run",)
    parts = [f"{verb}{_seconds(saving.run_s)} of the run"]
    if saving.run_low_s is not None and saving.run_high_s is not None:
        low, high = _seconds(saving.run_low_s), _seconds(saving.run_high_s)
        parts.append(f"({units.range_text(low, high)})")
    return tuple(parts)


def _seconds(seconds: float) -> str:
    return units.seconds_text(seconds * 1e9)


def speedup_text(speedup: float) -> str:
    """Returns a speed-up as text, such as `1.25 times as fast`."""
    return f"{units.times_text(speedup)} as fast"


def finding_confidence_text(finding: Finding) -> str:
    """Returns as text how sure a finding is, and whether its fix changes the program's results."""
    return f"{_CONFIDENCE_TEXT[finding.confidence]}, {FIX_EFFECT_TEXT[finding.semantics]}"


def evidence_text(evidence: Evidence, root: str | None = None) -> str:
    """Returns a measured quantity with its name, value and unit as text."""
    return f"{evidence_metric_text(evidence, root)}: {evidence_value_text(evidence)}"


def evidence_metric_text(evidence: Evidence, root: str | None = None) -> str:
    """Returns the name of a measured quantity, with paths below `root` made relative."""
    return plain(with_relative_files(evidence.metric, root))


def evidence_value_text(evidence: Evidence) -> str:
    """Returns a measured value as text with its unit."""
    value, unit = evidence.value, evidence.unit
    if unit == "ms":
        return units.value_text(None if value is None else value * 1e6, "ns")
    if unit == "count" and value is not None:
        return units.tenths_text(value)
    return units.value_text(value, unit)


def checked_cause_text(checked: Checked, root: str | None = None) -> str:
    """Returns why a cause of lost time was ruled out, and the most that its fix could save."""
    reason = with_relative_files(checked.reason, root)
    if checked.upper_ms is None:
        return plain(reason)
    if checked.upper_ms < _SMALLEST_SHOWN_MS:
        return f"{plain(reason)} (too small to save a measurable time)"
    return f"{plain(reason)} (at most {milliseconds(checked.upper_ms)} a step)"


def no_findings_text(advice: Advice) -> str:
    """Returns the sentence for advice without findings, of all rules or of one chosen rule."""
    if advice.selected_rule_or_finding is None:
        if advice.account is not None and not advice.account.is_mostly_explained:
            return NO_CURE_SENTENCE
        return NO_FINDINGS_SENTENCE if has_recording(advice) else NO_FINDINGS_OF_RUN_SENTENCE
    nothing = f"The rule `{advice.selected_rule_or_finding}` found nothing here"
    if advice.checked or not advice.unknown:
        return f"{nothing} that is worth a change."
    return f"{nothing}: the recording lacks what it needs."


def has_recording(advice: Advice) -> bool:
    """Returns whether advice is about a recording, and not about the ledger of a run alone."""
    return advice.run is None or advice.trace is None or advice.trace.slices.height > 0


def causes_not_worth_changing(advice: Advice, *, is_complete: bool = False) -> tuple[Checked, ...]:
    """Returns of each rule the largest cause that is present but not worth a fix.

    Those that are too small to matter are left out. If a rule is chosen, all are returned; all that
    are present if `is_complete`.
    """
    if advice.selected_rule_or_finding is not None:
        return advice.checked
    if is_complete:
        return tuple(checked for checked in advice.checked if not checked.is_absent)
    largest_by_rule: dict[str, Checked] = {}
    for checked in advice.checked:
        if checked.is_absent or _is_too_small_to_list(advice, checked):
            continue
        largest = largest_by_rule.setdefault(checked.rule, checked)
        largest_by_rule[checked.rule] = max(largest, checked, key=_upper_bounds_of_cause)
    return tuple(largest_by_rule.values())


def _upper_bounds_of_cause(checked: Checked) -> tuple[float, float]:
    """Returns the most that a fix could save of a step (ms) and of the run (s); -1 if unknown."""
    of_step, of_run = checked.upper_ms, checked.run_upper_s
    return -1.0 if of_step is None else of_step, -1.0 if of_run is None else of_run


def _is_too_small_to_list(advice: Advice, checked: Checked) -> bool:
    """Returns whether a fix could save less of the step, or of the run, than is worth a line."""
    if checked.upper_ms is not None:
        step_ms = max(advice.step.host_ms or 0.0, advice.step.device_ms or 0.0)
        return checked.upper_ms < max(_SMALLEST_SHOWN_MS, _MIN_LISTED_SHARE * step_ms)
    if checked.run_upper_s is not None and advice.run is not None:
        return checked.run_upper_s < _MIN_LISTED_SHARE * advice.run.wall_s
    return False


def absent_causes_text(advice: Advice, *, is_complete: bool = False) -> str | None:
    """Returns how many causes are not in the trace or too small to list, as a sentence, or None.

    With `is_complete`, all causes that are present are listed, as small as they may be.
    """
    present = causes_not_worth_changing(advice, is_complete=is_complete)
    listed = {checked.rule for checked in present}
    unlisted = [checked for checked in advice.checked if checked.rule not in listed]
    count = len({checked.rule for checked in unlisted})
    shorter = {checked.rule for checked in causes_not_worth_changing(advice)}
    left_out = len({checked.rule for checked in advice.checked} - shorter)
    if not count or advice.selected_rule_or_finding is not None:
        return None
    count_text = f"and {count} other" if listed else f"{count}"
    verb_phrase = "cause was" if count == 1 else "causes were"
    absent = {checked.rule for checked in unlisted if checked.is_absent}
    small = {checked.rule for checked in unlisted if not checked.is_absent}
    result = "not found in this trace, or too small" if absent else "found too small to matter"
    result = result if small else "not found in this trace"
    note = f"; {left_out} are left out of a shorter list" if left_out > count else ""
    return f"{count_text} {verb_phrase} checked and {result}{note}"


def typical_step_text(step: TypicalStep, *, with_bound: bool = True) -> str:
    """Returns the typical step's host time, device time and limiting factor as text, if known.

    Without `with_bound`, the limiting factor is left out.
    """
    parts = []
    if step.host_ms is not None:
        parts.append(f"host {milliseconds(step.host_ms)}")
    if step.device_ms is not None:
        parts.append(f"device {milliseconds(step.device_ms)}")
    if step.regime is not None and with_bound:
        parts.append(f"bound by {BOUND_BY_PHRASES[step.regime]}")
    if not step.count:
        return ", ".join(["no complete step", *parts])
    return ", ".join([*parts, f"median of {step.count} steps" if step.count > 1 else "one step"])


def joint_saving_text(advice: Advice) -> str | None:
    """Returns a sentence on the time that all fixes save together; None for fewer than two."""
    if len(advice.findings) < 2:
        return None
    per_step, of_run = advice.joint.estimate_ms, advice.joint.run_s
    if per_step is None and of_run is None:
        return "These savings overlap; they do not add up."
    amounts = [] if per_step is None else [f"{milliseconds(per_step)} a step"]
    amounts += [] if of_run is None else [f"{_seconds(of_run)} of the run"]
    return f"Together they save {', '.join(amounts)}."


def counted_missing_data_texts(advice: Advice) -> list[str]:
    """Returns a sentence for each kind of recording that many rules need and only this one lacks.

    A rule is counted by one sentence at most; `rules_by_missing_data` can leave these rules out.
    """
    sentences = []
    for sentence, lacks_only_this in _SENTENCES_ON_RECORDINGS:
        if _are_rules_counted(advice, lacks_only_this):
            count = len({unknown.rule for unknown in advice.unknown if lacks_only_this(unknown)})
            sentences.append(f"{count} rule{'s need' if count > 1 else ' needs'} {sentence}")
    return sentences


def _are_rules_counted(advice: Advice, lacks_only_this: Callable[[Unknown], bool]) -> bool:
    """Returns whether one sentence reports all rules that lack a kind of recording alone."""
    return advice.selected_rule_or_finding is None and sum(map(lacks_only_this, advice.unknown)) > 1


def _lacks_only_a_gpu_recording(unknown: Unknown) -> bool:
    """Returns whether recording the program on a GPU would let the rule be checked."""
    known = {need.remedy.partition(":")[0] for need in REQUIREMENT_BY_NEED.values()}
    needed = {text.partition(":")[0] for text in unknown.needs.split("; ")}
    return REQUIREMENT_BY_NEED["device"].remedy.partition(":")[0] in needed and needed <= known


def _lacks_only_the_ledger(unknown: Unknown) -> bool:
    """Returns whether the account of the whole run would let the rule be checked."""
    return unknown.needs == REQUIREMENT_BY_NEED["ledger"].remedy


_SENTENCES_ON_RECORDINGS: Final = (
    ("a recording from a GPU.", _lacks_only_a_gpu_recording),
    (f"{REQUIREMENT_BY_NEED['ledger'].remedy}.", _lacks_only_the_ledger),
)
"""What many rules lack at once, to follow `need`, and whether a rule lacks it alone."""


def rules_by_missing_data(
    advice: Advice, root: str | None = None, *, omit_counted: bool = False
) -> dict[str, list[str]]:
    """Returns the names of rules that could not be checked, grouped by the data they lack.

    With `omit_counted`, the rules that `counted_missing_data_texts` counts are left out.
    """
    counted = [
        lacks_only_this
        for _, lacks_only_this in _SENTENCES_ON_RECORDINGS
        if omit_counted and _are_rules_counted(advice, lacks_only_this)
    ]
    needs: dict[str, list[str]] = {}
    for unknown in advice.unknown:
        if not any(lacks_only_this(unknown) for lacks_only_this in counted):
            needs.setdefault(with_relative_files(unknown.needs, root), []).append(unknown.rule)
    return needs


_MAX_LISTED_SLICES_PER_NUMBER: Final = 8
"""Largest number of slices listed below one measured number; JSON output has all slice ids."""


@dataclass(frozen=True, slots=True)
class EvidenceEvent:
    """A slice that a number was measured from: its id, name, and times as text."""

    id: int
    name: str
    times: str
    """Duration and start of the slice as text."""


def evidence_events(trace: Trace | None, evidence: Evidence) -> list[EvidenceEvent]:
    """Returns the first slices that a number was measured from; an empty list without a trace."""
    if trace is None:
        return []
    slice_ids = [
        slice_id
        for slice_id in evidence.events[:_MAX_LISTED_SLICES_PER_NUMBER]
        if slice_id < trace.slices.height
    ]
    rows = trace.slices.select("name", "start", "duration")[slice_ids].iter_rows()
    return [
        EvidenceEvent(slice_id, str(name), _slice_duration_and_start_text(start, duration))
        for slice_id, (name, start, duration) in zip(slice_ids, rows, strict=True)
    ]


def unlisted_events_text(evidence: Evidence) -> str | None:
    """Returns a sentence on how many measured slices are not listed; None if all are listed."""
    unlisted = len(evidence.events) - _MAX_LISTED_SLICES_PER_NUMBER
    return f"and {unlisted:,} more, by id in `--format json`" if unlisted > 0 else None


def _slice_duration_and_start_text(start_ns: int, duration_ns: int | None) -> str:
    """Returns a slice's duration and start time as text with units."""
    return f"{units.value_text(duration_ns, 'ns')}, from {units.value_text(start_ns, 'instant')}"
