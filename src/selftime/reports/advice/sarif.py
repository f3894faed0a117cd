"""Findings with a line as SARIF 2.1.0, which code hosts show beside the code.

See https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. Only findings whose file and
line are known are results; the others are counted in the run's properties. A trace may name any
text as a file: what would lead to another machine or above the sources is none.
"""

import json
import ntpath
import posixpath
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final
from urllib.parse import quote

from selftime._version import __version__
from selftime.advice.answer import Advice
from selftime.advice.base import Finding, Rule, Where
from selftime.reports.advice import wording
from selftime.reports.plain import plain

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(advice: Advice, rules: Mapping[str, Rule], *, root: str | None = None) -> str:
    """The findings; `rules` gives their pages, and files below `root` are relative to it."""
    found = [(finding, _artifact(finding.where, root)) for finding in advice.findings]
    placed = [(finding, artifact) for finding, artifact in found if artifact is not None]
    used = sorted({finding.rule for finding, _ in placed})
    run = {
        "tool": {
            "driver": {
                "name": "selftime",
                "version": __version__,
                "rules": [_rule(name, rules.get(name)) for name in used],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, used.index(one.rule), artifact) for one, artifact in placed],
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


def _result(finding: Finding, index: int, artifact: dict[str, str]) -> dict[str, Any]:
    saving = wording.saving_text(finding.saving)
    message = f"{_said(finding.title)}: {saving}. {_said(finding.fix.text)}"
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": artifact,
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


def _said(text: str) -> str:
    """A sentence without a link: in a message `[text](address)` is one (SARIF 2.1.0, 3.11.6)."""
    return plain(text).replace("](", "] (")


def _artifact(where: Where, root: str | None) -> dict[str, str] | None:
    return artifact_of(where.file, where.line, root)


def artifact_of(name: str | None, line: int | None, root: str | None) -> dict[str, str] | None:
    """The file's address; None if it is unknown, on another machine, or above the sources."""
    if name is None or line is None:
        return None
    file = wording.file_below(name, root)
    if file.startswith("/"):
        return {"uri": PurePosixPath(posixpath.normpath(f"/{file.lstrip('/')}")).as_uri()}
    windows = PureWindowsPath(ntpath.normpath(file))
    if windows.drive.startswith("\\"):
        return None
    if windows.drive:
        return {"uri": windows.as_uri() if windows.is_absolute() else quote(windows.as_posix())}
    if windows.parts[:1] == ("..",):
        return None
    return {"uri": quote(posixpath.normpath(file)), "uriBaseId": "%SRCROOT%"}
