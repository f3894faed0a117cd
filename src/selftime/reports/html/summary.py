"""Writes advice as HTML without style and script, for notebook viewers that block frames.

Every name is escaped.
"""

from collections.abc import Iterator
from html import escape

from selftime.advice import Advice, Finding
from selftime.reports.advice import wording
from selftime.reports.advice.account_sentence import (
    account_sentence,
    bound_by_text,
    kind_sentences,
    time_text,
)
from selftime.reports.advice.account_table import (
    KINDS_TITLE,
    account_row_texts,
    rows_that_stand_alone,
    verdict_text,
)
from selftime.reports.ledger import run_sentence
from selftime.reports.plain import plain
from selftime.reports.recorded_slow_steps import recorded_slow_step_sentences
from selftime.units import milliseconds_text


def advice_summary_html(advice: Advice, *, root: str | None = None) -> str:
    """Returns the trace's quality, step time and findings as HTML; paths are relative to `root`."""
    return "\n".join(_advice_html_blocks(advice, root))


def one_line_advice_summary(advice: Advice) -> str:
    """Returns one line of HTML: trace quality, step time, and the number of findings."""
    parts: list[str] = [advice.health.verdict]
    if advice.health.verdict != "unusable":
        count = len(advice.findings)
        if advice.step.count:
            parts.append(_one_line_about_step(advice))
        parts.append(f"{count or 'no'} finding{'' if count == 1 else 's'}")
    return _escape_for_html(" · ".join(parts))


def _one_line_about_step(advice: Advice) -> str:
    """Returns the step's time and what bounds it, by its account if there is one."""
    if advice.account is None:
        return f"step {wording.typical_step_text(advice.step)}"
    time = milliseconds_text(advice.account.step_ms)
    return f"step {time}, bound by {bound_by_text(advice.account)}"


def _advice_html_blocks(advice: Advice, root: str | None) -> Iterator[str]:
    """Yields blocks of HTML: trace quality, step time, and a table of findings."""
    if advice.run is not None and advice.trace is not None:
        run = advice.trace.run
        for sentence in (
            f"Run {run_sentence(run, root)}",
            *recorded_slow_step_sentences(run, root),
        ):
            yield f"<p>{_escape_for_html(sentence)}</p>"
    if wording.has_recording(advice):
        yield from _recording_html_blocks(advice, root)
    if not advice.findings:
        if advice.health.verdict != "unusable" or not wording.has_recording(advice):
            yield f"<p>{_escape_for_html(wording.no_findings_text(advice))}</p>"
        return
    rows = "\n".join(_finding_table_row(finding, root) for finding in advice.findings)
    head = "<tr><th>What</th><th>Where</th><th>Saving</th><th>What to do</th></tr>"
    yield f"<table>\n<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    joint_sentence = wording.joint_saving_text(advice)
    if joint_sentence is not None:
        yield f"<p>{_escape_for_html(joint_sentence)}</p>"


def _recording_html_blocks(advice: Advice, root: str | None) -> Iterator[str]:
    """Yields the quality of the trace, and the step time where that can be trusted."""
    health_sentence = wording.HEALTH_VERDICT_SENTENCES[advice.health.verdict]
    yield f"<p>Health {_escape_for_html(health_sentence)}</p>"
    if advice.health.notes:
        notes = "".join(f"<li>{_escape_for_html(note.text)}</li>" for note in advice.health.notes)
        yield f"<ul>{notes}</ul>"
    if advice.health.verdict == "unusable" and not advice.findings:
        return
    spent = account_sentence(advice, root)
    step = wording.typical_step_text(advice.step, with_bound=spent is None)
    if spent is not None:
        yield f"<p>Step {_escape_for_html(spent)}</p>"
        yield f"<p>As recorded: {_escape_for_html(step)}</p>"
        yield _account_table(advice, root)
        yield from _kinds_of_steps(advice, root)
    else:
        yield f"<p>Step {_escape_for_html(step)}</p>"


def _account_table(advice: Advice, root: str | None) -> str:
    """Returns the largest rows of the step's account as an HTML table."""
    account = advice.account
    if account is None:
        return ""
    shown = rows_that_stand_alone(account)
    cells = (
        (time_text(row), text, verdict_text(advice, row), row.text)
        for row, text in zip(shown, account_row_texts(account, root), strict=False)
    )
    rows = "\n".join(
        f"<tr>{''.join(f'<td>{_escape_for_html(cell)}</td>' for cell in of_row)}</tr>"
        for of_row in cells
    )
    head = "<tr><th>Time</th><th>Spent on</th><th>Verdict</th><th>Why</th></tr>"
    return f"<table>\n<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


def _kinds_of_steps(advice: Advice, root: str | None) -> Iterator[str]:
    """Yields a list of the kinds of steps as HTML; nothing where all steps are alike."""
    sentences = [] if advice.account is None else kind_sentences(advice.account, root)
    if sentences:
        items = "".join(f"<li>{_escape_for_html(sentence)}</li>" for sentence in sentences)
        yield f"<p>{KINDS_TITLE}</p>\n<ul>{items}</ul>"


def _finding_table_row(finding: Finding, root: str | None) -> str:
    """Returns a finding as a row of an HTML table."""
    saving = f"{wording.saving_text(finding.saving)}; {wording.finding_confidence_text(finding)}"
    code = "" if finding.fix.code is None else f"<pre>{_code_lines_as_html(finding.fix.code)}</pre>"
    cells = (
        _escape_for_html(finding.title),
        f"<code>{_escape_for_html(wording.source_location_text(finding.where, root))}</code>",
        _escape_for_html(saving),
        _escape_for_html(finding.fix.text) + code,
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _code_lines_as_html(code: str) -> str:
    """Returns code with each line escaped for HTML."""
    return "\n".join(map(_escape_for_html, code.splitlines()))


def _escape_for_html(text: str) -> str:
    """Returns text from a trace without control characters, escaped for HTML."""
    return escape(plain(text))
