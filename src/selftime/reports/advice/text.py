"""Writes advice as terminal text: trace quality, findings, ruled-out causes, missing data."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import polars as pl
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from selftime.advice.advice_result import Advice, HealthVerdict
from selftime.advice.rule_definition import Evidence, Finding, Unknown, Where
from selftime.analysis.notebook_cells import source_text_of_cell
from selftime.reports.advice import wording
from selftime.reports.advice.account_sentence import (
    account_sentence,
    job_sentence,
    unexplained_texts,
)
from selftime.reports.advice.account_table import ACCOUNT_TITLE, account_text_blocks
from selftime.reports.advice.wording import evidence_events, unlisted_events_text
from selftime.reports.ledger import recorded_steps_share_sentence, run_table
from selftime.reports.plain import plain
from selftime.reports.recorded_slow_steps import recorded_slow_step_sentences
from selftime.reports.terminal import render_as_text
from selftime.reports.wrapping import NamesText
from selftime.trace import Trace

_HEALTH_VERDICT_STYLES: Final[dict[HealthVerdict, str]] = {
    "good": "green",
    "degraded": "yellow",
    "unusable": "bold red",
}
"""Terminal colour of each verdict on the quality of the trace."""


def as_text(
    advice: Advice,
    *,
    width: int = 80,
    colour: bool = False,
    root: str | None = None,
    with_events: bool = False,
    slow_step_differences: Mapping[int, pl.DataFrame] = MappingProxyType({}),
) -> str:
    """Returns the complete advice as text; paths of files below `root` are relative to `root`.

    With `with_events`, the events behind each number are listed with their ids.
    `slow_step_differences` maps segments of the run to tables of `slow_step_difference`.
    """
    events = advice.trace if with_events else None
    run_blocks = _run_text_blocks(advice, root, slow_step_differences)
    parts = [*run_blocks, *_advice_text_blocks(advice, root, events)]
    return render_as_text(*parts, width=width, colour=colour)


def _run_text_blocks(
    advice: Advice, root: str | None, slow_step_differences: Mapping[int, pl.DataFrame]
) -> Iterator[RenderableType]:
    """Yields the account of the whole run: a sentence, a line for each part, what was recorded."""
    if advice.run is None or advice.trace is None:
        return
    has_recording = advice.trace.slices.height > 0
    share = recorded_steps_share_sentence(advice.run, has_recording=has_recording)
    run = advice.trace.run
    slow_steps = recorded_slow_step_sentences(run, root, slow_step_differences)
    yield run_table(run, root, *slow_steps, share)


def _advice_text_blocks(
    advice: Advice, root: str | None, trace: Trace | None
) -> Iterator[RenderableType]:
    """Yields blocks of text: trace quality, step time, findings, ruled-out causes, missing data."""
    has_steps = wording.has_recording(advice)
    if has_steps:
        yield _trace_health_and_step_time_table(advice, root)
        if advice.account is not None and advice.selected_rule_or_finding is None:
            yield from _section_title_lines(ACCOUNT_TITLE)
            yield from account_text_blocks(advice, root)
    if advice.health.verdict != "unusable" or advice.findings or not has_steps:
        yield from _finding_text_blocks(advice, root, trace)
    if advice.checked:
        yield from _section_title_lines(wording.CHECKED_CAUSES_TITLE)
        checked_causes = wording.causes_not_worth_changing(advice)
        if checked_causes:
            yield _two_column_table_of_rules(
                (checked.rule, wording.checked_cause_text(checked, root))
                for checked in checked_causes
            )
        absent_causes = wording.absent_causes_text(advice)
        if absent_causes is not None:
            yield Padding(Text(absent_causes, "dim"), (0, 0, 0, 2))
    if _missing_data_of_recording_or_run(advice):
        yield from _section_title_lines(wording.MISSING_DATA_TITLE)
        if advice.findings:
            yield from _unexplained_row_lines(advice, root)
        yield from _missing_data_text_blocks(advice, root)


def _finding_text_blocks(
    advice: Advice, root: str | None, trace: Trace | None
) -> Iterator[RenderableType]:
    """Yields the findings in their order, and what they save together."""
    yield from _section_title_lines(wording.FINDINGS_TITLE)
    if not advice.findings:
        yield Padding(NamesText(wording.no_findings_text(advice)), (0, 0, 0, 2))
        yield from _unexplained_row_lines(advice, root)
    for number, finding in enumerate(advice.findings, start=1):
        is_only_one_of_rule = [other.rule for other in advice.findings].count(finding.rule) == 1
        selector = (
            finding.rule if is_only_one_of_rule and trace is None else finding.id or finding.rule
        )
        code = "" if advice.trace is None else _source_line_of_cell(advice.trace, finding.where)
        yield from _numbered_finding_text_blocks(number, finding, selector, root, trace, code=code)
    joint_sentence = wording.joint_saving_text(advice)
    if joint_sentence is not None:
        yield Padding(Text(joint_sentence), (1, 0, 0, 2))


def _unexplained_row_lines(advice: Advice, root: str | None) -> Iterator[Padding]:
    """Yields the largest unexplained rows of the step's account, where they are much of it."""
    account, is_selection = advice.account, advice.selected_rule_or_finding is not None
    if account is None or account.is_mostly_explained or is_selection:
        return
    for text in unexplained_texts(account, root):
        yield Padding(NamesText(f"· {text}"), (0, 0, 0, 2))


def _missing_data_of_recording_or_run(advice: Advice) -> tuple[Unknown, ...]:
    """Returns the missing data; for a run without a recorded step, only what its ledger lacks."""
    if wording.has_recording(advice):
        return advice.unknown
    of_recording = "; ".join(note.text for note in advice.health.notes)
    return tuple(unknown for unknown in advice.unknown if unknown.needs != of_recording)


def _missing_data_text_blocks(advice: Advice, root: str | None) -> Iterator[Padding]:
    """Yields the data that the recording lacks, with the rules that need them."""
    for sentence in wording.counted_missing_data_texts(advice):
        yield Padding(NamesText(sentence), (0, 0, 0, 2))
    known = _missing_data_of_recording_or_run(advice)
    told = wording.rules_by_missing_data(replace(advice, unknown=known), root, omit_counted=True)
    for need, rules in told.items():
        yield Padding(NamesText(f"needs {plain(need)}"), (0, 0, 0, 2))
        yield Padding(NamesText(", ".join(rules), "dim"), (0, 0, 0, 4))


def _trace_health_and_step_time_table(advice: Advice, root: str | None) -> Table:
    """Returns a table of the trace's quality, its defects, and the step time."""
    table = Table.grid(padding=(0, 2, 0, 0))
    verdict = advice.health.verdict
    if advice.job is not None and advice.selected_rule_or_finding is None:
        table.add_row(Text("Job", "bold"), NamesText(job_sentence(advice.job, root)))
    table.add_row(
        Text("Health", "bold"),
        Text(wording.HEALTH_VERDICT_SENTENCES[verdict], _HEALTH_VERDICT_STYLES[verdict]),
    )
    for note in advice.health.notes:
        table.add_row("", NamesText(f"· {plain(note.text)}"))
    if verdict != "unusable":
        spent = account_sentence(advice, root)
        step = wording.typical_step_text(advice.step, with_bound=spent is None)
        table.add_row(Text("Step", "bold"), NamesText(spent or step))
        if spent is not None and step:
            table.add_row("", Text(f"as recorded: {step}", "dim"))
    return table


def _source_line_of_cell(trace: Trace, where: Where) -> str:
    """Returns the text of a line in a cell; empty if it is in none, or its text is not known."""
    text = None if where.file is None else source_text_of_cell(trace, where.file)
    lines = [] if text is None else text.splitlines()
    return lines[where.line - 1].strip() if where.line and where.line <= len(lines) else ""


def _section_title_lines(title: str) -> Iterator[Text]:
    """Yields an empty line and the title of a section."""
    yield Text()
    yield Text(title.upper(), "bold")


def _numbered_finding_text_blocks(
    number: int,
    finding: Finding,
    id_or_rule: str,
    root: str | None,
    trace: Trace | None,
    *,
    code: str,
) -> Iterator[RenderableType]:
    """Yields a finding as text; `id_or_rule` is what selects it in `selftime advise --finding`.

    `code` is its line in a cell of a notebook, which no editor can open; else empty.
    """
    head = Table.grid()
    head.add_row(NamesText(plain(finding.title), "bold"))
    head.add_row(NamesText(wording.source_location_text(finding.where, root), "cyan"))
    if code:
        head.add_row(Text(f"    {plain(code)}"))
    head.add_row(Text(wording.saving_text(finding.saving), "green"))
    head.add_row(NamesText(plain(wording.with_relative_files(finding.fix.text, root))))
    numbered = Table.grid(padding=(0, 1, 0, 0))
    numbered.add_column(justify="right", width=2)
    numbered.add_row(Text(str(number), "bold"), head)
    yield Padding(numbered, (0 if number == 1 else 1, 0, 0, 0))
    yield from _fix_code_lines(finding)
    numbers = Table.grid()
    for evidence in finding.evidence:
        numbers.add_row(
            Padding(NamesText(wording.evidence_text(evidence, root), "dim"), (0, 0, 0, 2))
        )
        for line in _evidence_event_lines(trace, evidence):
            numbers.add_row(Padding(NamesText(line, "dim"), (0, 0, 0, 4)))
    numbers.add_row(Text(f"{wording.finding_confidence_text(finding)} [{id_or_rule}]", "dim"))
    yield Padding(numbers, (0, 0, 0, 3))


def _evidence_event_lines(trace: Trace | None, evidence: Evidence) -> Iterator[str]:
    """Yields a line for each slice that a number was measured from: id, name, duration, start."""
    if trace is None:
        return
    for event in evidence_events(trace, evidence):
        yield f"slice {event.id}: {plain(event.name)}, {event.times}"
    more_events = unlisted_events_text(evidence)
    if more_events is not None:
        yield more_events


def _fix_code_lines(finding: Finding) -> Iterator[Text]:
    """Yields the lines of a finding's code, indented, and not wrapped so that it can be copied."""
    for line in (finding.fix.code or "").splitlines():
        yield Text(f"       {plain(line)}", no_wrap=True)


def _two_column_table_of_rules(rules_and_texts: Iterator[tuple[str, str]]) -> Padding:
    """Returns a table of two columns: rule names, and a sentence about each rule."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for rule, text in rules_and_texts:
        table.add_row(Text(rule), NamesText(text))
    return Padding(table, (0, 0, 0, 2))
