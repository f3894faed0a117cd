"""Writes a check and the history of its measures as one HTML page without scripts."""

from html import escape
from typing import Final

from selftime.compare.check.limit_checks import RecordingCheck
from selftime.reports.check import (
    contributing_line_text,
    headline,
    times_left_out_sentence,
    value_and_limit_texts,
)
from selftime.reports.history import history_as_html
from selftime.reports.plain import plain

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #1f6feb; --worse: #c2410c; --better: #15803d; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --line: #79b8ff; --worse: #fb923c; --better: #4ade80; }}
}}
body {{
  font: 15px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
}}
h1 {{ font-size: 1.3rem; }} h2 {{ font-size: 1.1rem; }} figure {{ margin: 1.5rem 0; }}
table {{ display: block; overflow-x: auto; }}
td, th {{ padding-right: 1rem; text-align: left; white-space: nowrap; }}
.over td:first-child {{ color: var(--worse); }}
svg {{ display: block; border-bottom: 1px solid currentColor; }}
svg text {{ font-size: 11px; fill: currentColor; }}
polyline {{ fill: none; stroke: var(--line); }} circle {{ fill: var(--line); }}
line {{ stroke-dasharray: 4 3; }}
.worse {{ stroke: var(--worse); }} .better {{ stroke: var(--better); }}
</style>
{body}
</html>
"""


def as_html(check: RecordingCheck, *, root: str | None = None) -> str:
    """Returns a check as a page: one row per measure, notes, and charts of the history.

    Paths of files below `root` are relative to it.
    """
    title = escape(headline(check))
    parts = [f"<h1>{title}</h1>"]
    if check.checked:
        parts.append(_table(check))
    sentences = [f"{one.measure}: {one.why}" for one in check.checked if one.why]
    sentences += [
        f"{one.measure}: {contributing_line_text(line, root)}"
        for one in check.checked
        for line in one.lines
    ]
    sentences += [*check.notes, *filter(None, [times_left_out_sentence(check)])]
    parts += [f"<p>{escape(plain(sentence))}</p>" for sentence in sentences]
    if check.history is not None:
        parts += history_as_html(check.history)
    return _PAGE.format(title=title, body="\n".join(parts))


def _table(check: RecordingCheck) -> str:
    rows = ["<tr><th></th><th>measure</th><th>now</th><th>limit</th><th></th></tr>"]
    for one in check.checked:
        cells = (one.state, one.measure, *value_and_limit_texts(one), one.against)
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f'<tr class="{one.state}">{row}</tr>')
    return f"<table>{''.join(rows)}</table>"
