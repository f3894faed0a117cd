"""Writes what `selftime doctor` found of a machine as text or JSON."""

import json
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from selftime.capture.doctor import (
    DoctorFinding,
    FindingState,
    FindingSubject,
    MachineExamination,
)
from selftime.reports.plain import plain
from selftime.reports.terminal import render_as_text

_COLOUR_BY_CHECK_STATE: Final = {
    "ok": "green",
    "warning": "yellow",
    "problem": "bold red",
    "unknown": "magenta",
}


def as_json(examination: MachineExamination) -> str:
    """Returns what was found of a machine as JSON, as `selftime doctor --format json` prints it."""
    return json.dumps(examination.to_dict(), indent=1) + "\n"


def as_text(examination: MachineExamination, *, width: int, colour: bool) -> str:
    """Returns what was found of a machine for a terminal, by subject, with a verdict at the end."""
    return render_as_text(*_examination_text_blocks(examination), width=width, colour=colour)


def _examination_text_blocks(examination: MachineExamination) -> list[RenderableType]:
    parts: list[RenderableType] = []
    column = max(len(finding.check) for finding in examination.findings)
    for subject in FindingSubject:
        of_subject = [finding for finding in examination.findings if finding.subject is subject]
        if not of_subject:
            continue
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=len("  warning"))
        table.add_column(width=column)
        table.add_column(overflow="fold")
        for finding in of_subject:
            table.add_row(*_finding_table_row(finding))
        parts += [Text(subject.value, style="bold"), table, Text()]
    return [*parts, Text(_examination_verdict_sentence(examination))]


def _finding_table_row(finding: DoctorFinding) -> tuple[RenderableType, ...]:
    text = Text(plain(finding.seen))
    if finding.cure is not None:
        text.append(f"\n{plain(finding.cure)}", style="italic")
    return _coloured_check_state(finding.state), Text(finding.check), text


def _coloured_check_state(state: FindingState) -> RenderableType:
    return Text(f"  {state.value}", style=_COLOUR_BY_CHECK_STATE[state.value])


def _examination_verdict_sentence(examination: MachineExamination) -> str:
    states = [finding.state for finding in examination.findings]
    problems, warnings = states.count(FindingState.problem), states.count(FindingState.warning)
    if problems:
        verb = "prevents" if problems == 1 else "prevent"
        return f"{_count_and_noun_text(problems, 'problem')} {verb} recording."
    if warnings:
        return f"This machine can record, with {_count_and_noun_text(warnings, 'warning')}."
    return "This machine can record."


def _count_and_noun_text(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
