"""Advice as the page needs it: that of `selftime advise --format json`, and what is said of it.

The page composes no sentence about a finding: what it shows, and what it copies, is written here in
the words of the command.
"""

import posixpath
from pathlib import Path, PurePosixPath
from typing import Any, Final

from selftime.advice import Advice
from selftime.advice.answer import Health, cut
from selftime.advice.base import Finding
from selftime.advice.identity import chosen
from selftime.reports.advice import wording
from selftime.reports.advice.brief import as_brief
from selftime.reports.advice.queries import Queries

_LEAST_PARTS: Final = 3
"""Parts of a folder that is left out before files: `/home` and the like say nothing."""


def advised(advice: Advice, path: str | None = None) -> dict[str, Any]:
    """`Advice` of the page's contract.

    Args:
        advice: The answer.
        path: What commands about it are asked of; the file of its trace if not given.
    """
    root = common_folder(advice)
    if path is None:
        path = (advice.trace.source if advice.trace is not None else "") or "PATH"
    here, queries = str(Path.cwd()), Queries(path, advice.trace)
    said = {
        "health": wording.HEALTH[advice.health.verdict],
        "step": wording.step_text(advice.step),
        "nothing_to_do": None if advice.findings else wording.NOTHING_TO_DO,
        "findings": [_said(advice, one, root, here, queries) for one in advice.findings],
        "joint": wording.joint_text(advice),
        "speedup": advice.joint.speedup and wording.speedup_text(advice.joint.speedup),
        "checked_title": wording.CHECKED,
        "checked": [
            {"rule": one.rule, "text": cut(wording.checked_text(one, root))}
            for one in wording.weighed(advice)
        ],
        "absent": wording.absent_text(advice),
        "unknown_title": wording.CANNOT_TELL,
        "unknown": [
            {"text": cut(f"needs {needs}"), "rules": rules}
            for needs, rules in wording.by_need(advice, root).items()
        ],
        "markdown": as_brief(advice, queries, root=here),
    }
    return {**advice.to_dict(), "said": said}


def health_told(health: Health) -> dict[str, Any]:
    """`Health` of the page's contract: the verdict as a sentence, and what limits the trace."""
    notes = [cut(note.text) for note in health.notes]
    return {"verdict": health.verdict, "text": wording.HEALTH[health.verdict], "notes": notes}


def common_folder(advice: Advice) -> str | None:
    """The folder that the files of all findings lie below; None if there is none to speak of."""
    files = [one.where.file for one in advice.findings]
    folders = [posixpath.dirname(file) for file in files if file and file.startswith("/")]
    if not folders:
        return None
    folder = posixpath.commonpath(folders)
    return folder if len(PurePosixPath(folder).parts) >= _LEAST_PARTS else None


def _said(
    advice: Advice, finding: Finding, root: str | None, here: str, queries: Queries
) -> dict[str, Any]:
    alone = chosen(advice, finding.id) if finding.id else advice
    line = wording.line_text(finding.where, root)
    return {
        "line": cut(line),
        "place": cut(wording.place_text(finding.where, root).removeprefix(line)),
        "saving": wording.saving_parts(finding.saving),
        "sureness": wording.sureness_text(finding),
        "evidence": [
            {"metric": cut(wording.metric_text(one, root)), "value": wording.value_text(one)}
            for one in finding.evidence
        ],
        "markdown": as_brief(alone, queries, root=here, whole=True),
    }
