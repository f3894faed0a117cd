"""What a check found, for a terminal, programs, a pull request, annotations and test reports."""

import json
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Final
from xml.etree import ElementTree as ET

from rich.table import Table
from rich.text import Text

from selftime import units
from selftime._version import __version__
from selftime.compare.check import Check, Line, MeasureCheck
from selftime.compare.measures import MEASURES
from selftime.reports.advice import wording
from selftime.reports.advice.markdown import inert, quoted
from selftime.reports.advice.sarif import artifact_of
from selftime.reports.plain import plain
from selftime.reports.terminal import sheet

FORMAT: Final = "selftime.check/1"
"""The name and version of the JSON form."""

_SAID: Final = {
    "within": "All measures are within their limits",
    "over": "A limit is exceeded",
    "unknown": "Some measures cannot be judged",
}


def as_text(found: Check, *, width: int = 80, colour: bool = False, root: str | None = None) -> str:
    """The verdict, a row for each measure, the lines behind what is over.

    Here and below, files that lie below `root` are named as seen from there.
    """
    head = Text(f"{_SAID[found.state]}: {_counted(found)}", style="bold")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("", "measure", "step", "limit", "", style="dim")
    for one in found.checked:
        table.add_row(one.state, one.measure, *_figures(one), one.against)
    parts: list[Text | Table] = [head, Text(), table]
    for one in found.checked:
        if one.why:
            parts.append(Text(f"\n{one.measure} against the {one.against}: {plain(one.why)}"))
        if one.lines:
            parts.append(Text(f"\n{one.measure} is spent most on"))
            parts += [Text(f"  {_line(line, root)}") for line in one.lines]
    page = sheet(*parts, width=width, colour=colour)
    notes = (fill(f"- {plain(note)}", width, subsequent_indent="  ") for note in found.notes)
    return page + (
        "\nDIFFERENCES BETWEEN THE RECORDINGS\n" + "\n".join(notes) + "\n" if found.notes else ""
    )


def _counted(found: Check) -> str:
    states = [one.state for one in found.checked]
    told = [f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states))]
    return ", ".join(told) if told else "nothing was held against a limit"


def _figures(one: MeasureCheck) -> tuple[str, str]:
    """What a step takes, with the difference and its interval; and the limit."""
    now, limit = (_written(one.measure, value) for value in (one.now, one.limit))
    if one.against == "baseline" and one.low is not None and one.high is not None and one.limit:
        low, high = (end / one.limit for end in (one.low, one.high))
        now += f" ({low:+.1%} to {high:+.1%})"
    return now, limit


def _written(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    if not MEASURES[name].is_exact:
        return units.time_text(value * 1e6)
    return units.text(round(value), MEASURES[name].unit)


def _line(at: Line, root: str | None) -> str:
    place = f"{wording.file_below(at.file, root)}:{at.line}"
    return plain(f"{place} in {at.function}" if at.function else place)


def as_json(found: Check) -> str:
    """`FORMAT` (docs/formats.md)."""
    head = {"format": FORMAT, "state": found.state, "status": found.status}
    return json.dumps({**head, **asdict(found)}, allow_nan=False) + "\n"


def as_markdown(found: Check, *, root: str | None = None) -> str:
    """A verdict and a table, for a pull request."""
    lines = [f"**{_SAID[found.state]}**: {_counted(found)}", ""]
    lines += ["| | measure | step | limit | against |", "|---|---|---|---|---|"]
    for one in found.checked:
        now, limit = _figures(one)
        lines.append(f"| {one.state} | `{one.measure}` | {now} | {limit} | {one.against} |")
    for one in found.checked:
        if one.why:
            lines += ["", f"`{one.measure}` cannot be judged: {inert(one.why)}"]
        if one.lines:
            lines += ["", f"`{one.measure}` is spent most on", ""]
            lines += [f"- {quoted(_line(at, root))}" for at in one.lines]
    lines += [""] if found.notes else []
    lines += [f"- {inert(note)}" for note in found.notes]
    return "\n".join(lines) + "\n"


def as_sarif(found: Check, *, root: str | None = None) -> str:
    """What is over, on the lines that spend it; SARIF 2.1.0."""
    over = [one for one in found.checked if one.state == "over"]
    placed = [(one, artifact_of(at.file, at.line, root), at) for one in over for at in one.lines]
    used = sorted({one.measure for one in over})
    results = [
        {
            "ruleId": one.measure,
            "ruleIndex": used.index(one.measure),
            "level": "error",
            "message": {"text": _message(one)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": artifact,
                        "region": {"startLine": max(1, at.line)},
                    }
                }
            ],
        }
        for one, artifact, at in placed
        if artifact is not None
    ]
    rules = [{"id": name, "shortDescription": {"text": MEASURES[name].doc}} for name in used]
    driver = {"name": "selftime", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"state": found.state},
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    report = {"$schema": schema, "version": "2.1.0", "runs": [run]}
    return json.dumps(report, indent=1, allow_nan=False) + "\n"


def _message(one: MeasureCheck) -> str:
    now, limit = _figures(one)
    return f"{one.measure}: {now} a step, and {limit} is the {one.against}"


def as_junit(found: Check, *, root: str | None = None) -> str:
    """A test for each measure: failed if it is over, skipped if it cannot be judged."""
    states = [one.state for one in found.checked]
    told = {
        "name": "selftime",
        "tests": str(len(states)),
        "failures": str(states.count("over")),
        "skipped": str(states.count("unknown")),
        "errors": "0",
    }
    suite = ET.Element("testsuite", told)
    for one in found.checked:
        name = f"{one.measure} against the {one.against}"
        case = ET.SubElement(suite, "testcase", classname=_xml(Path(found.source).name), name=name)
        if one.state == "over":
            where = "\n".join(_line(at, root) for at in one.lines)
            ET.SubElement(case, "failure", message=_message(one)).text = _xml(where)
        elif one.state == "unknown":
            ET.SubElement(case, "skipped", message=_xml(one.why))
    suites = ET.Element("testsuites")
    suites.append(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _xml(text: str) -> str:
    """Text without what no XML may hold."""
    return plain(text)
