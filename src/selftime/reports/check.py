"""Writes as text, JSON or XML whether a recording's measures, such as step time, keep limits."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Any, Final
from xml.etree import ElementTree as ET

from rich.table import Table
from rich.text import Text

from selftime import units
from selftime._version import __version__
from selftime.compare.check.account_measures import BUDGET_MEASURES
from selftime.compare.check.limit_checks import RecordingCheck
from selftime.compare.check.run_checks import ContributingLine, MeasureCheck
from selftime.compare.run_differences import MIN_RUNS_TO_ESTIMATE_VARIATION
from selftime.reports.advice import wording
from selftime.reports.advice.markdown import code_span, escape_markdown
from selftime.reports.advice.sarif import artifact_location
from selftime.reports.history import (
    change_sentences,
    history_as_json_data,
    history_text_blocks,
)
from selftime.reports.measures import measure_doc, measure_value_texts
from selftime.reports.plain import plain
from selftime.reports.terminal import render_as_text

FORMAT: Final = "selftime.check/1"
"""Name and version of the JSON form of a check."""

_JSON_KEY_BY_LINE_FIELD: Final = {"line_number": "line", "amount": "much"}
"""The JSON key of each field of a contributing line whose name differs from its key."""

_CHECK_STATE_SENTENCES: Final = {
    "within": "All measures are within their limits",
    "over": "A limit is exceeded",
    "unknown": "Some measures cannot be judged",
}
"""Sentence for each result of a check: all within limits, some over, or unknown."""


def as_text(
    check: RecordingCheck, *, width: int = 80, colour: bool = False, root: str | None = None
) -> str:
    """Returns a check as text: result, one row per measure, and the lines behind exceeded limits.

    Here and below, paths of files below `root` are relative to it.
    """
    heading = Text(headline(check), style="bold")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("", "measure", "now", "limit", "", style="dim")
    for result in check.checked:
        table.add_row(
            result.state,
            result.measure,
            *value_and_limit_texts(result),
            result.against,
        )
    parts: list[Text | Table] = [heading]
    if check.checked:
        parts += [Text(), table]
    for result in check.checked:
        if result.why:
            parts.append(
                Text(f"\n{result.measure} against the {result.against}: {plain(result.why)}")
            )
        if result.lines:
            parts.append(Text(f"\n{result.measure} is spent most on"))
            parts += [Text(f"  {contributing_line_text(line, root)}") for line in result.lines]
    if check.history is not None:
        parts += history_text_blocks(check.history, width)
    page = render_as_text(*parts, width=width, colour=colour)
    notes = [fill(f"- {plain(note)}", width, subsequent_indent="  ") for note in check.notes]
    if notes:
        page += "\nNOTES\n" + "\n".join(notes) + "\n"
    left_out = times_left_out_sentence(check)
    return page + (f"\n{fill(left_out, width)}\n" if left_out else "")


def times_left_out_sentence(check: RecordingCheck) -> str:
    """Returns a sentence on times of the baseline that were not compared; empty without any."""
    if not check.times_left_out:
        return ""
    return (
        f"Counts decide. Not judged as times depend on the machine and its load: "
        f"{', '.join(check.times_left_out)}; `--times` judges them by a baseline of "
        f"{MIN_RUNS_TO_ESTIMATE_VARIATION} runs or more."
    )


def headline(check: RecordingCheck) -> str:
    """Returns the result of a check, and how many measures there are of each state."""
    return f"{_CHECK_STATE_SENTENCES[check.state]}: {_measures_by_state_text(check)}"


def _measures_by_state_text(check: RecordingCheck) -> str:
    """Returns as text how many measures are within their limit, over it, and unknown."""
    states = [result.state for result in check.checked]
    if not states and check.history is not None:
        is_new = check.history.has_new_regression
        return f"these runs show {'a' if is_new else 'no'} change for the worse that is new"
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states))]
    return ", ".join(counts) if counts else "nothing was checked against a limit"


def value_and_limit_texts(result: MeasureCheck) -> tuple[str, str]:
    """Returns two texts: a measure's value with the interval of its change, and its limit.

    They have as many digits as tell them apart.
    """
    value, limit = measure_value_texts(result.measure, result.now, result.limit)
    if (
        result.against == "baseline"
        and result.low is not None
        and result.high is not None
        and result.limit
    ):
        low, high = (bound / result.limit for bound in (result.low, result.high))
        value += f" ({_signed_share_text(low)} to {_signed_share_text(high)})"
    return value, limit


def _signed_share_text(share: float) -> str:
    return f"{'+' if share > 0 else ''}{units.share_text(share)}"


def contributing_line_text(line: ContributingLine, root: str | None) -> str:
    """Returns `file:line` of a source line, and its function."""
    location = wording.file_and_line_text(line.file, line.line_number, root)
    return f"{location} in {plain(line.function)}" if line.function else location


def as_json(check: RecordingCheck) -> str:
    """Returns a check as JSON in the format `selftime.check/1` (docs/formats.md)."""
    header = {"format": FORMAT, "state": check.state, "status": check.exit_status}
    fields = asdict(check)
    if check.history is None:
        del fields["history"]
    else:
        fields["history"] = history_as_json_data(check.history)
    for measure in fields["checked"]:
        measure["lines"] = [_contributing_line_as_json(line) for line in measure["lines"]]
    return json.dumps({**header, **fields}, allow_nan=False) + "\n"


def _contributing_line_as_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a contributing line with their keys in `selftime.check/1`."""
    return {_JSON_KEY_BY_LINE_FIELD.get(name, name): value for name, value in fields.items()}


def as_markdown(check: RecordingCheck, *, root: str | None = None) -> str:
    """Returns a check as Markdown for a pull request: the result, and one row per measure."""
    lines = [f"**{_CHECK_STATE_SENTENCES[check.state]}**: {_measures_by_state_text(check)}", ""]
    if check.checked:
        lines += ["| | measure | now | limit | against |", "|---|---|---|---|---|"]
    for result in check.checked:
        value, limit = value_and_limit_texts(result)
        lines.append(
            f"| {result.state} | `{result.measure}` | {value} | {limit} | {result.against} |"
        )
    for result in check.checked:
        if result.why:
            lines += [
                "",
                f"`{result.measure}` cannot be judged: {escape_markdown(result.why)}",
            ]
        if result.lines:
            lines += ["", f"`{result.measure}` is spent most on", ""]
            lines += [f"- {code_span(contributing_line_text(line, root))}" for line in result.lines]
    lines += [""] if check.notes else []
    lines += [f"- {escape_markdown(note)}" for note in check.notes]
    left_out = times_left_out_sentence(check)
    lines += ["", escape_markdown(left_out)] if left_out else []
    if check.history is not None:
        lines += ["", "Since the history began:", ""]
        lines += [f"- {escape_markdown(one)}" for one in change_sentences(check.history)]
    return "\n".join(lines) + "\n"


def as_sarif(check: RecordingCheck, *, root: str | None = None) -> str:
    """Returns exceeded limits as SARIF 2.1.0, at the source lines that contribute most."""
    exceeded = [result for result in check.checked if result.state == "over"]
    results_with_place = [
        (result, artifact_location(line.file, line.line_number, root), line)
        for result in exceeded
        for line in result.lines
    ]
    measures = sorted({result.measure for result in exceeded})
    results = [
        {
            "ruleId": result.measure,
            "ruleIndex": measures.index(result.measure),
            "level": "error",
            "message": {"text": _exceeded_limit_sentence(result)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": artifact,
                        "region": {"startLine": max(1, line.line_number)},
                    }
                }
            ],
        }
        for result, artifact, line in results_with_place
        if artifact is not None
    ]
    rules = [{"id": name, "shortDescription": {"text": measure_doc(name)}} for name in measures]
    driver = {"name": "selftime", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"state": check.state},
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    report = {"$schema": schema, "version": "2.1.0", "runs": [run]}
    return json.dumps(report, indent=1, allow_nan=False) + "\n"


def _exceeded_limit_sentence(result: MeasureCheck) -> str:
    """Returns a sentence that says which limit a measure exceeds."""
    value, limit = value_and_limit_texts(result)
    each = " a step" if result.measure in BUDGET_MEASURES else ""
    return f"{result.measure}: {value}{each}, above the {result.against} of {limit}"


def as_junit(check: RecordingCheck, *, root: str | None = None) -> str:
    """Returns a check as JUnit XML, in which a measure over its limit is a failed test."""
    states = [result.state for result in check.checked]
    attributes = {
        "name": "selftime",
        "tests": str(len(states)),
        "failures": str(states.count("over")),
        "skipped": str(states.count("unknown")),
        "errors": "0",
    }
    suite = ET.Element("testsuite", attributes)
    for result in check.checked:
        name = f"{result.measure} against the {result.against}"
        case = ET.SubElement(
            suite,
            "testcase",
            classname=_without_control_characters(Path(check.source).name),
            name=name,
        )
        if result.state == "over":
            locations = "\n".join(contributing_line_text(at, root) for at in result.lines)
            ET.SubElement(
                case, "failure", message=_exceeded_limit_sentence(result)
            ).text = _without_control_characters(locations)
        elif result.state == "unknown":
            ET.SubElement(case, "skipped", message=_without_control_characters(result.why))
    suites = ET.Element("testsuites")
    suites.append(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _without_control_characters(text: str) -> str:
    """Returns the text without control characters, which XML does not allow."""
    return plain(text)
