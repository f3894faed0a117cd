"""Shows the web page about traces, jobs and advice in the output of a notebook cell.

The page and its data are in the output and are saved with the notebook; no server is needed. The
frame has no origin, so the page cannot access the notebook. Where frames are blocked, a summary
without scripts remains.
"""

from collections.abc import Mapping
from html import escape
from os.path import commonpath
from pathlib import Path
from typing import Any, Final

from selftime.advice import Advice, advise
from selftime.errors import UsageError
from selftime.reports.html import Frame, as_html
from selftime.reports.html.summary import advice_summary_html, one_line_advice_summary
from selftime.reports.plain import plain
from selftime.trace import Job, Trace
from selftime.views import FORMER_NAMES, VIEWS

MAX_NOTEBOOK_PAGE_BYTES: Final = 3_000_000
"""Largest page, in bytes, that is put into a notebook, whose file stores every page."""
_MAX_SLICES_IN_PAGE: Final = 300_000
"""Largest number of slices of a trace that gets a full page; a trace with more gets only a
summary, since a full page would take long."""
_DEFAULT_PAGE_HEIGHT_PIXELS: Final = 680
"""Default height of the page in pixels."""
_IFRAME_TEMPLATE: Final = (
    '<iframe class="selftime-page" title="{title}" sandbox="allow-scripts allow-downloads"'
    ' srcdoc="{page}"'
    ' style="width: 100%; height: {height}px; border: 1px solid #8886; border-radius: 6px">'
    "The page is not shown here. In a notebook that is not trusted, trust it or run the cell; "
    "elsewhere, open the notebook in JupyterLab or VS Code.</iframe>"
)
"""HTML template of the `<iframe>` that shows the page.

Browsers never show the text in it; what removes frames from an output leaves the text.
"""
_SELECTORS_BY_COLOUR_SCHEME: Final = {
    "light": (
        '[data-jp-theme-light="true"]',
        ".vscode-light",
        ".vscode-high-contrast-light",
        '[theme="light"]',
    ),
    "dark": (
        '[data-jp-theme-light="false"]',
        ".vscode-dark",
        ".vscode-high-contrast:not(.vscode-high-contrast-light)",
        '[theme="dark"]',
    ),
}
"""CSS selectors of what JupyterLab, VS Code and Colab mark by their theme.

A frame without an origin cannot read the theme, but its colour scheme is that of its element.
"""
_COLOUR_SCHEME_STYLE: Final = "".join(
    f"{', '.join(f'{marked} .selftime-page' for marked in selectors)} {{color-scheme: {scheme}}}"
    for scheme, selectors in _SELECTORS_BY_COLOUR_SCHEME.items()
)
_PANELS_WITH_SEVERAL_TABLES: Final = (
    "answer",
    "compare",
    "critical_path",
    "distributed",
    "flame",
    "lines",
    "memory",
    "modules",
    "overview",
    "roofline",
    "run",
    "timeline",
)
"""Names of the page's panels that show more than one table."""
_VIEWS_WITHOUT_PANEL: Final = (
    "critical_path_band",
    "matches",
    "memory_curve",
    "memory_flame",
    "memory_holders",
    "memory_lifetimes",
    "memory_peak",
    "off_path",
    "op_profile",
    "run_curve",
    "run_kinds",
    "run_summary",
    "selection",
    "slice",
)
"""Names of views that have no panel of their own in the page; the panel `view` shows their
tables."""


class NotebookPage:
    """A web page about traces; a notebook shows the page if it is the value of a cell."""

    def __init__(
        self,
        traces: Mapping[str, Trace],
        *,
        panel: str,
        params: Mapping[str, Any],
        height: int,
        advice: Mapping[str, Advice],
    ) -> None:
        self.traces = dict(traces)
        self.panel = panel
        self.params = dict(params)
        self.height = height
        self.advice = dict(advice)

    def __repr__(self) -> str:
        return f"<`{self.panel}` of {plain(', '.join(self.traces))}: a notebook draws it>"

    def _repr_html_(self) -> str:
        for name in self.traces.keys() - self.advice.keys():
            self.advice[name] = advise(self.traces[name])
        page = as_html(
            self.traces,
            limit=MAX_NOTEBOOK_PAGE_BYTES,
            advice=self.advice,
            frame=Frame(self.panel, self.params),
        )
        title = f"selftime: {', '.join(self.traces)}"
        frame = _IFRAME_TEMPLATE.format(
            title=_escaped_html(title), page=escape(page), height=self.height
        )
        summaries = map(_collapsed_summary_html, self.traces.items(), self.advice.values())
        return "\n".join([*summaries, f"<style>{_COLOUR_SCHEME_STYLE}</style>", frame])


def show(subject: Trace | Job | Advice, panel: str = "answer", /, **params: Any) -> NotebookPage:
    """Returns the page about a trace, a job or advice, with the named panel open.

    Args:
        subject: What to show.
        panel: The panel: a view such as `operators`, or one of answer, compare, distributed,
            flame, lines, memory, modules, overview, roofline, run, timeline.
        params: The view's options, or other parameters of the panel's URL, such as `slice=ID` of
            the timeline. `height` is the height in pixels.
    """
    height = int(params.pop("height", _DEFAULT_PAGE_HEIGHT_PIXELS))
    panel = FORMER_NAMES.get(panel, panel)
    if panel in VIEWS and panel not in _PANELS_WITH_SEVERAL_TABLES:
        unknown = params.keys() - VIEWS[panel].options.keys()
        if unknown:
            raise UsageError(f"`{panel}` has no option `{min(unknown)}`")
    elif panel not in _PANELS_WITH_SEVERAL_TABLES:
        raise UsageError(f"there is no panel `{panel}`; there are {', '.join(panel_names())}")
    if panel in _VIEWS_WITHOUT_PANEL:
        panel, params = "view", {"name": panel, **params}
    return NotebookPage(
        _traces_by_shown_name(subject),
        panel=panel,
        params=params,
        height=height,
        advice=_given_advice_by_trace_name(subject),
    )


def notebook_html(subject: Trace | Job | Advice) -> str:
    """Returns HTML: the page about a trace, a job or advice; for a large trace only a summary."""
    traces = _traces_by_shown_name(subject)
    slices = sum(trace.slices.height for trace in traces.values())
    if traces and slices <= _MAX_SLICES_IN_PAGE:
        return show(subject)._repr_html_()
    if isinstance(subject, Advice):
        return advice_summary_html(subject, root=str(Path.cwd()))
    rows = "".join(f"<li>{_escaped_html(repr(trace))}</li>" for trace in traces.values())
    hint = "<p><code>.show()</code> shows the page; this may take minutes.</p>"
    return f"<ul>{rows}</ul>{hint}"


def panel_names() -> list[str]:
    """Returns the names of all panels of the page."""
    return sorted({*_PANELS_WITH_SEVERAL_TABLES, *VIEWS})


def _traces_by_shown_name(subject: Trace | Job | Advice) -> dict[str, Trace]:
    """Returns {name shown in the page: trace} for the traces of a trace, a job or advice."""
    if isinstance(subject, Job):
        return {_path_in_job(path, subject): trace for path, trace in subject.traces.items()}
    trace = subject.trace if isinstance(subject, Advice) else subject
    return {} if trace is None else {_trace_name(trace): trace}


def _given_advice_by_trace_name(subject: Trace | Job | Advice) -> dict[str, Advice]:
    """Returns {trace name: advice} if `subject` is advice; an empty dict for a trace or a job."""
    return (
        {_trace_name(subject.trace): subject}
        if isinstance(subject, Advice) and subject.trace
        else {}
    )


def _trace_name(trace: Trace) -> str:
    """Returns the last part of a trace's path; `recording` for a trace without a path."""
    return trace.source.rstrip("/").rpartition("/")[2] or "recording"


def _path_in_job(path: str, job: Job) -> str:
    """Returns a trace's path relative to the common folder of the job's traces."""
    folder = commonpath([str(Path(one).parent) for one in job.traces])
    return path.removeprefix(folder).lstrip("/")


def _collapsed_summary_html(name_and_trace: tuple[str, Trace], advice: Advice) -> str:
    """Returns HTML of one line that expands to a trace's summary when the user clicks it."""
    line = f"selftime · {_escaped_html(name_and_trace[0])} · {one_line_advice_summary(advice)}"
    text = advice_summary_html(advice, root=str(Path.cwd()))
    return f"<details><summary>{line}</summary>\n{text}\n</details>"


def _escaped_html(text: str) -> str:
    """Returns text with HTML special characters escaped and control characters removed."""
    return escape(plain(text))
