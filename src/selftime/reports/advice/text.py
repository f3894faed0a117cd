"""Advice as a terminal shows it: health first, then three sections, legible without colour."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from selftime.advice.answer import Advice, Verdict
from selftime.advice.base import Evidence, Finding
from selftime.reports.advice import wording
from selftime.reports.advice.events import events_of, more_text
from selftime.reports.plain import plain
from selftime.reports.terminal import sheet
from selftime.trace import Trace

_VERDICT_STYLE: Final[dict[Verdict, str]] = {
    "good": "green",
    "degraded": "yellow",
    "unusable": "bold red",
}


def as_text(
    advice: Advice,
    *,
    width: int = 80,
    colour: bool = False,
    root: str | None = None,
    events: bool = False,
) -> str:
    """The whole answer; files below `root` are named as seen from there.

    With `events` each number has those that it was measured on, by id.
    """
    parts = _parts(advice, root, advice.trace if events else None)
    return sheet(*parts, width=width, colour=colour)


def _parts(advice: Advice, root: str | None, trace: Trace | None) -> Iterator[RenderableType]:
    yield _facts(advice)
    if advice.health.verdict != "unusable":
        yield from _section(wording.DO_THIS)
        if not advice.findings:
            yield Padding(Text(wording.NOTHING_TO_DO), (0, 0, 0, 2))
        for number, finding in enumerate(advice.findings, start=1):
            alone = [one.rule for one in advice.findings].count(finding.rule) == 1
            word = finding.rule if alone and trace is None else finding.id or finding.rule
            yield _finding(number, finding, word, root, trace)
        joint = wording.joint_text(advice)
        if joint is not None:
            yield Padding(Text(joint), (1, 0, 0, 2))
    if advice.checked:
        yield from _section(wording.CHECKED)
        weighed = wording.weighed(advice)
        if weighed:
            yield _list((c.rule, wording.checked_text(c, root)) for c in weighed)
        absent = wording.absent_text(advice)
        if absent is not None:
            yield Padding(Text(absent, "dim"), (0, 0, 0, 2))
    if advice.unknown:
        yield from _section(wording.CANNOT_TELL)
        for needs, rules in wording.by_need(advice, root).items():
            yield Padding(Text(f"needs {plain(needs)}", overflow="fold"), (0, 0, 0, 2))
            yield Padding(Text(", ".join(rules), "dim", overflow="fold"), (0, 0, 0, 4))


def _facts(advice: Advice) -> Table:
    facts = Table.grid(padding=(0, 2, 0, 0))
    verdict = advice.health.verdict
    facts.add_row(Text("Health", "bold"), Text(wording.HEALTH[verdict], _VERDICT_STYLE[verdict]))
    for note in advice.health.notes:
        facts.add_row("", Text(f"· {plain(note.text)}", overflow="fold"))
    if verdict != "unusable":
        facts.add_row(Text("Step", "bold"), Text(wording.step_text(advice.step)))
    return facts


def _section(title: str) -> Iterator[Text]:
    yield Text()
    yield Text(title.upper(), "bold")


def _finding(
    number: int, finding: Finding, word: str, root: str | None, trace: Trace | None
) -> Padding:
    """A finding, and the word that it is asked for by."""
    body = Table.grid()
    body.add_row(Text(plain(finding.title), "bold", overflow="fold"))
    body.add_row(Text(wording.place_text(finding.where, root), "cyan", overflow="fold"))
    body.add_row(Text(wording.saving_text(finding.saving), "green"))
    for line in (plain(finding.fix.text), *_code(finding)):
        body.add_row(Text(line, overflow="fold"))
    for evidence in finding.evidence:
        body.add_row(Padding(Text(wording.evidence_text(evidence, root), "dim"), (0, 0, 0, 2)))
        for line in _events(trace, evidence):
            body.add_row(Padding(Text(line, "dim", overflow="fold"), (0, 0, 0, 4)))
    body.add_row(Text(f"{wording.sureness_text(finding)} [{word}]", "dim"))
    numbered = Table.grid(padding=(0, 1, 0, 0))
    numbered.add_column(justify="right", width=2)
    numbered.add_row(Text(str(number), "bold"), body)
    return Padding(numbered, (0 if number == 1 else 1, 0, 0, 0))


def _events(trace: Trace | None, evidence: Evidence) -> Iterator[str]:
    """What it was measured on; `selftime view slice PATH --id N` tells all of one."""
    if trace is None:
        return
    for event in events_of(trace, evidence):
        yield f"slice {event.id}: {plain(event.name)}, {event.times}"
    more = more_text(evidence)
    if more is not None:
        yield more


def _code(finding: Finding) -> Iterator[str]:
    for line in (finding.fix.code or "").splitlines():
        yield f"    {plain(line)}"


def _list(entries: Iterator[tuple[str, str]]) -> Padding:
    listed = Table.grid(padding=(0, 2, 0, 0))
    listed.add_column(no_wrap=True)
    for rule, text in entries:
        listed.add_row(Text(rule), Text(text, overflow="fold"))
    return Padding(listed, (0, 0, 0, 2))
