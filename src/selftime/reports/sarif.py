"""Findings with a line as SARIF 2.1.0, which code hosts show beside the code.

See https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. Only findings whose file and
line are known are results; the others are counted in the run's properties.
"""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final
from urllib.parse import quote

import selftime
from selftime.advice.answer import Advice
from selftime.advice.base import Finding, Rule
from selftime.reports import wording
from selftime.reports.plain import plain

__all__ = ["as_sarif"]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(advice: Advice, rules: Mapping[str, Rule], *, root: str | None = None) -> str:
    """The findings; `rules` gives their pages, and files below `root` are relative to it."""
    placed = [f for f in advice.findings if f.where.file is not None and f.where.line is not None]
    used = sorted({finding.rule for finding in placed})
    run = {
        "tool": {
            "driver": {
                "name": "selftime",
                "version": selftime.__version__,
                "rules": [_rule(name, rules.get(name)) for name in used],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, used.index(finding.rule), root) for finding in placed],
        "properties": {
            "health": advice.health.verdict,
            "findingsWithoutLine": len(advice.findings) - len(placed),
        },
    }
    report = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(report, indent=1, allow_nan=False) + "\n"


def _rule(name: str, rule: Rule | None) -> dict[str, Any]:
    if rule is None:
        return {"id": name}
    return {
        "id": name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.sections.get("What it means", rule.title).strip()},
        "help": {"text": rule.sections.get("What to do", rule.title).strip()},
        "properties": {"covers": list(rule.covers)},
    }


def _result(finding: Finding, index: int, root: str | None) -> dict[str, Any]:
    saving = wording.saving_text(finding.saving)
    message = f"{plain(finding.title)}: {saving}. {plain(finding.fix.text)}"
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _artifact(wording.file_below(finding.where.file or "", root)),
            "region": {"startLine": max(1, finding.where.line or 1)},
        }
    }
    if finding.where.function is not None:
        location["logicalLocations"] = [{"name": plain(finding.where.function)}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": "note" if finding.confidence == "low" else "warning",
        "message": {"text": message},
        "locations": [location],
        "properties": {
            "estimateMs": finding.saving.estimate_ms,
            "confidence": finding.confidence,
            "semantics": finding.semantics,
        },
    }


def _artifact(file: str) -> dict[str, str]:
    windows = PureWindowsPath(file)
    if windows.drive:
        return {"uri": windows.as_uri() if windows.is_absolute() else quote(windows.as_posix())}
    posix = PurePosixPath(file)
    if posix.is_absolute():
        return {"uri": posix.as_uri()}
    return {"uri": quote(str(posix)), "uriBaseId": "%SRCROOT%"}
