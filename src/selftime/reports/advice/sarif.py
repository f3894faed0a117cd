"""Writes findings as SARIF 2.1.0, which code hosts show beside the code.

See https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. Only findings whose file and
line are known become results; the others are counted in the run's properties. File names come from
the trace: paths on other machines and paths above the source folder are dropped.
"""

import json
import ntpath
import posixpath
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final
from urllib.parse import quote

from selftime._version import __version__
from selftime.advice.advice_result import Advice
from selftime.advice.rule_definition import Finding, Rule, Where
from selftime.names.notebook_cells import is_notebook_cell
from selftime.reports.advice import wording
from selftime.reports.plain import plain
from selftime.units import truncate_middle

_MAX_PATH_CHARACTERS: Final = 4096
"""Largest number of characters of a path; a longer one is no file of any system."""
_SARIF_SCHEMA_URL: Final = "https://json.schemastore.org/sarif-2.1.0.json"
"""URL of the JSON schema of SARIF 2.1.0."""


def as_sarif(advice: Advice, rules: Mapping[str, Rule], *, root: str | None = None) -> str:
    """Returns the findings as SARIF; `rules` has the texts of the rules."""
    findings = [
        (finding, _sarif_location_of_finding(finding.where, root)) for finding in advice.findings
    ]
    located = [(finding, artifact) for finding, artifact in findings if artifact is not None]
    rule_names = sorted({finding.rule for finding, _ in located})
    run = {
        "tool": {
            "driver": {
                "name": "selftime",
                "version": __version__,
                "rules": [_sarif_rule(name, rules.get(name)) for name in rule_names],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [
            _sarif_result(finding, rule_names.index(finding.rule), artifact)
            for finding, artifact in located
        ],
        "properties": {
            "health": advice.health.verdict,
            "findingsWithoutLine": len(advice.findings) - len(located),
            **_sarif_properties_of_run(advice),
        },
    }
    report = {"$schema": _SARIF_SCHEMA_URL, "version": "2.1.0", "runs": [run]}
    return json.dumps(report, indent=1, allow_nan=False) + "\n"


def _sarif_properties_of_run(advice: Advice) -> dict[str, Any]:
    """Returns the wall time of the run and the time that was recorded of it; {} without a run."""
    if advice.run is None:
        return {}
    return {"runWallSeconds": advice.run.wall_s, "runCoveredSeconds": advice.run.covered_s}


def _sarif_rule(rule_name: str, rule: Rule | None) -> dict[str, Any]:
    """Returns an advice rule as a SARIF `reportingDescriptor`: name, title and texts."""
    if rule is None:
        return {"id": rule_name}
    return {
        "id": rule_name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.sections.get("What it means", rule.title).strip()},
        "help": {"text": rule.sections.get("What to do", rule.title).strip()},
        "properties": {"covers": list(rule.covers)},
    }


def _sarif_result(
    finding: Finding, rule_index: int, source_artifact: dict[str, str]
) -> dict[str, Any]:
    """Returns a finding as a SARIF result."""
    saving = wording.saving_text(finding.saving)
    title, fix = map(_escape_sarif_link_brackets, (finding.title, finding.fix.text))
    message = f"{title}: {saving}. {fix}"
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": source_artifact,
            "region": {"startLine": max(1, finding.where.line or 1)},
        }
    }
    if finding.where.function is not None:
        location["logicalLocations"] = [{"name": truncate_middle(plain(finding.where.function))}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": "note" if finding.confidence == "low" else "warning",
        "message": {"text": message},
        "locations": [location],
        "properties": {
            "estimateMs": finding.saving.estimate_ms,
            "runSeconds": finding.saving.run_s,
            "confidence": finding.confidence,
            "semantics": finding.semantics,
        },
    }


def _escape_sarif_link_brackets(text: str) -> str:
    """Returns the text with `](` written as `] (`, so that SARIF viewers show no link."""
    return plain(text).replace("](", "] (")


def _sarif_location_of_finding(source_location: Where, root: str | None) -> dict[str, str] | None:
    """Returns the source file of a finding as a SARIF `artifactLocation`; None if it is unknown."""
    return artifact_location(source_location.file, source_location.line, root)


def _may_be_file(file_name: str) -> bool:
    """Returns whether a name may be that of a file: no cell of a notebook, and no endless text."""
    return len(file_name) <= _MAX_PATH_CHARACTERS and not is_notebook_cell(file_name)


def artifact_location(
    file_name: str | None, line: int | None, root: str | None
) -> dict[str, str] | None:
    """Returns a file as a SARIF `artifactLocation`; None if unknown, remote or outside `root`.

    None for a cell of a notebook, too.
    """
    if file_name is None or line is None or not _may_be_file(file_name):
        return None
    file = wording.relative_file(file_name, root)
    if file.startswith("/"):
        return {"uri": PurePosixPath(posixpath.normpath(f"/{file.lstrip('/')}")).as_uri()}
    windows_path = PureWindowsPath(ntpath.normpath(file))
    if windows_path.drive.startswith("\\"):
        return None
    if windows_path.drive:
        return {
            "uri": windows_path.as_uri()
            if windows_path.is_absolute()
            else quote(windows_path.as_posix())
        }
    if windows_path.parts[:1] == ("..",):
        return None
    return {"uri": quote(posixpath.normpath(file)), "uriBaseId": "%SRCROOT%"}
