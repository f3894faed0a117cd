"""Describes advice as JSON, with all sentences that the web page shows.

The page builds no sentences about findings itself: all texts that it shows and copies are written
here, with the same wording as the command's.
"""

import posixpath
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from selftime.advice import Advice
from selftime.advice.advice_result import Health
from selftime.advice.finding_ids import select_findings
from selftime.advice.rule_definition import Finding
from selftime.reports.advice import wording
from selftime.reports.advice.account_sentence import job_sentence, unexplained_texts
from selftime.reports.advice.brief import as_brief
from selftime.reports.advice.queries import ShellQueries
from selftime.reports.labels import LINE_EVIDENCE_LABELS
from selftime.reports.ledger import run_sentence
from selftime.reports.page_data.account import account_data
from selftime.reports.page_data.number_slices import (
    DescribedNumber,
    described_numbers,
    links_of_finding,
    number_links,
)
from selftime.reports.page_data.step_with_fixes import headline_texts, step_with_fix_data
from selftime.units import truncate_middle

_MIN_PATH_PARTS_OF_COMMON_FOLDER: Final = 3
"""Smallest number of parts of a folder path that is cut from file names; `/home` has too few."""


def advice_data(
    advice: Advice,
    command_path: str | None = None,
    numbers: tuple[DescribedNumber, ...] | None = None,
) -> dict[str, Any]:
    """Returns advice as the JSON object `Advice` of the page's interface.

    Args:
        advice: The advice.
        command_path: The path of the trace in commands; by default the one that it was read from.
        numbers: The numbers of the advice that stand for slices, if they are at hand.
    """
    root = common_folder_of_findings(advice)
    links = number_links(described_numbers(advice, root) if numbers is None else numbers)
    source = "" if advice.trace is None else advice.trace.source
    queries = ShellQueries(command_path or source or "PATH", advice.trace, command_path)
    sentences = {
        "health": wording.HEALTH_VERDICT_SENTENCES[advice.health.verdict],
        "headline": headline_texts(advice),
        "run": _run_text(advice, root),
        "account": account_data(advice, root, links),
        "job": None if advice.job is None else truncate_middle(job_sentence(advice.job, root)),
        "nothing_to_do": None if advice.findings else wording.no_findings_text(advice),
        "unexplained": _unexplained_texts(advice, root),
        "findings": [
            _texts_of_finding_on_page(advice, entry, root, queries, links)
            for entry in advice.findings
        ],
        "joint": wording.joint_saving_text(advice),
        "checked_title": wording.CHECKED_CAUSES_TITLE,
        "checked": [
            {"rule": entry.rule, "text": truncate_middle(wording.checked_cause_text(entry, root))}
            for entry in wording.causes_not_worth_changing(advice)
        ],
        "absent": wording.absent_causes_text(advice),
        "unknown_title": wording.MISSING_DATA_TITLE,
        "unknown": [
            *({"text": text, "rules": []} for text in wording.counted_missing_data_texts(advice)),
            *(
                {"text": truncate_middle(f"needs {needs}"), "rules": rules}
                for needs, rules in wording.rules_by_missing_data(
                    advice, root, omit_counted=True
                ).items()
            ),
        ],
        "markdown": as_brief(advice, queries, root=str(Path.cwd())),
    }
    return {**advice.to_dict(), "said": sentences}


def _run_text(advice: Advice, root: str | None) -> str | None:
    """Returns what the whole run was spent on as a sentence; None without the run's ledger."""
    if advice.run is None or advice.trace is None:
        return None
    return truncate_middle(run_sentence(advice.trace.run, root))


def _unexplained_texts(advice: Advice, root: str | None) -> list[str]:
    """Returns the largest unexplained rows as sentences, where they are much of the step."""
    if advice.account is None or advice.account.is_mostly_explained:
        return []
    return [truncate_middle(text) for text in unexplained_texts(advice.account, root)]


def health_data(health: Health) -> dict[str, Any]:
    """Returns the verdict on a trace's quality as the page's JSON object `Health`."""
    notes = [truncate_middle(note.text) for note in health.notes]
    return {
        "verdict": health.verdict,
        "text": wording.HEALTH_VERDICT_SENTENCES[health.verdict],
        "notes": notes,
    }


def common_folder_of_findings(advice: Advice) -> str | None:
    """Returns the deepest folder that contains all findings' files; None if it is near the root."""
    files = [finding.where.file for finding in advice.findings]
    folders = [posixpath.dirname(file) for file in files if file and file.startswith("/")]
    if not folders:
        return None
    folder = posixpath.commonpath(folders)
    return folder if len(PurePosixPath(folder).parts) >= _MIN_PATH_PARTS_OF_COMMON_FOLDER else None


def _texts_of_finding_on_page(
    advice: Advice,
    finding: Finding,
    root: str | None,
    queries: ShellQueries,
    links: Mapping[str, dict[str, str]],
) -> dict[str, Any]:
    """Returns all sentences that the page shows about one finding."""
    advice_with_finding = select_findings(advice, finding.id) if finding.id else advice
    line = wording.source_line_text(finding.where, root)
    return {
        "line": truncate_middle(line),
        "place": truncate_middle(
            wording.source_location_text(finding.where, root).removeprefix(line)
        ),
        "saving": wording.saving_text_parts(finding.saving),
        "sureness": wording.finding_confidence_text(finding),
        "line_evidence": _line_evidence_sentence(finding),
        "step": step_with_fix_data(advice, finding.saving),
        "slices": links_of_finding(links, finding.id or finding.rule, len(finding.evidence)),
        "evidence": [
            {
                "metric": truncate_middle(wording.evidence_metric_text(evidence, root)),
                "value": wording.evidence_value_text(evidence),
            }
            for evidence in finding.evidence
        ],
        "markdown": as_brief(advice_with_finding, queries, root=str(Path.cwd()), whole=True),
    }


def _line_evidence_sentence(finding: Finding) -> str | None:
    """Returns how the finding's line is known, as a sentence; None without a known line."""
    where = finding.where
    if where.line is None or where.how == "unknown":
        return None
    return LINE_EVIDENCE_LABELS[where.how].doc
