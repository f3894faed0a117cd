"""The answer as plain HTML without style or script: what is left where pages are not let run.

Every name is escaped; none of them can become markup.
"""

from collections.abc import Iterator
from html import escape

from selftime.advice import Advice, Finding
from selftime.reports.advice import wording
from selftime.reports.plain import plain


def summary(advice: Advice, *, root: str | None = None) -> str:
    """The health, the step and the findings; files below `root` are named as seen from there."""
    return "\n".join(_parts(advice, root))


def in_a_line(advice: Advice) -> str:
    """The verdict, the step and how much there is to do."""
    parts: list[str] = [advice.health.verdict]
    if advice.health.verdict != "unusable":
        count = len(advice.findings)
        if advice.step.count:
            parts.append(f"step {wording.step_text(advice.step)}")
        parts.append(f"{count or 'no'} finding{'' if count == 1 else 's'}")
    return _safe(" · ".join(parts))


def _parts(advice: Advice, root: str | None) -> Iterator[str]:
    yield f"<p>Health {_safe(wording.HEALTH[advice.health.verdict])}</p>"
    if advice.health.notes:
        notes = "".join(f"<li>{_safe(note.text)}</li>" for note in advice.health.notes)
        yield f"<ul>{notes}</ul>"
    if advice.health.verdict == "unusable":
        return
    yield f"<p>Step {_safe(wording.step_text(advice.step))}</p>"
    if not advice.findings:
        yield f"<p>{_safe(wording.NOTHING_TO_DO)}</p>"
        return
    rows = "\n".join(_row(finding, root) for finding in advice.findings)
    head = "<tr><th>What</th><th>Where</th><th>Saving</th><th>What to do</th></tr>"
    yield f"<table>\n<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    together = wording.joint_text(advice)
    if together is not None:
        yield f"<p>{_safe(together)}</p>"


def _row(finding: Finding, root: str | None) -> str:
    saving = f"{wording.saving_text(finding.saving)}; {wording.sureness_text(finding)}"
    code = "" if finding.fix.code is None else f"<pre>{_lines(finding.fix.code)}</pre>"
    cells = (
        _safe(finding.title),
        f"<code>{_safe(wording.place_text(finding.where, root))}</code>",
        _safe(saving),
        _safe(finding.fix.text) + code,
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _lines(code: str) -> str:
    return "\n".join(map(_safe, code.splitlines()))


def _safe(text: str) -> str:
    return escape(plain(text))
