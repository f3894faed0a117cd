"""How a trace, a job and advice show themselves in a notebook: the page, in a frame of the cell.

Nothing is loaded and no server is asked: the page and its data are in the output, and stay in the
notebook's file with it. The frame has no origin, so that the page in it can reach nothing of the
notebook. Where frames are not let in, a summary without script is left.
"""

from collections.abc import Mapping
from html import escape
from os.path import commonpath
from pathlib import Path
from typing import Any, Final

from selftime.advice import Advice, advise
from selftime.errors import UsageError
from selftime.reports.html import Frame, as_html
from selftime.reports.html.summary import in_a_line, summary
from selftime.reports.plain import plain
from selftime.trace import Job, Trace
from selftime.views import FORMER_NAMES, VIEWS

LIMIT: Final = 3_000_000
"""Bytes of the page in an output: a notebook's file keeps every one of them."""
_MOST_SLICES: Final = 300_000
"""A trace of more shows itself as a summary, so that naming it in a cell takes no minute."""
_HEIGHT: Final = 680
_FRAME: Final = (
    '<iframe title="{title}" sandbox="allow-scripts allow-downloads" srcdoc="{page}"'
    ' style="width: 100%; height: {height}px; border: 1px solid #8886; border-radius: 6px">'
    "</iframe>"
)
_PLACES: Final = (
    "answer",
    "compare",
    "distributed",
    "flame",
    "lines",
    "memory",
    "modules",
    "overview",
    "timeline",
)
"""Panels that are more than the table of a view."""
_UNLISTED: Final = ("matches", "memory_curve", "memory_peak", "selection", "slice")
"""Views without a panel of their own: their tables are in the panel of all tables."""


class Shown:
    """A page that a notebook draws where it is the value of a cell."""

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
            limit=LIMIT,
            advice=self.advice,
            frame=Frame(self.panel, self.params),
        )
        title = f"selftime: {', '.join(self.traces)}"
        frame = _FRAME.format(title=_safe(title), page=escape(page), height=self.height)
        return "\n".join([*map(_folded, self.traces.items(), self.advice.values()), frame])


def show(what: Trace | Job | Advice, panel: str = "answer", /, **params: Any) -> Shown:
    """The page of a trace, of a job's traces or of advice, opened at one of its panels.

    Args:
        what: What to show.
        panel: The panel: a view such as `operators`, or one of answer, compare, distributed,
            flame, lines, memory, modules, overview, timeline.
        params: The view's options, or what else the address of the panel tells: `slice=ID` of the
            timeline. `height` is the height in pixels.
    """
    height = int(params.pop("height", _HEIGHT))
    panel = FORMER_NAMES.get(panel, panel)
    if panel in VIEWS and panel not in _PLACES:
        unknown = params.keys() - VIEWS[panel].options.keys()
        if unknown:
            raise UsageError(f"`{panel}` has no option `{min(unknown)}`")
    elif panel not in _PLACES:
        raise UsageError(f"there is no panel `{panel}`; there are {', '.join(panels())}")
    if panel in _UNLISTED:
        panel, params = "view", {"name": panel, **params}
    return Shown(_traces(what), panel=panel, params=params, height=height, advice=_known(what))


def html(what: Trace | Job | Advice) -> str:
    """How it shows itself: as the page, or if that takes long as what is known at once."""
    traces = _traces(what)
    slices = sum(trace.slices.height for trace in traces.values())
    if traces and slices <= _MOST_SLICES:
        return show(what)._repr_html_()
    if isinstance(what, Advice):
        return summary(what, root=str(Path.cwd()))
    rows = "".join(f"<li>{_safe(repr(trace))}</li>" for trace in traces.values())
    hint = "<p><code>.show()</code> draws the page of it; that takes a while.</p>"
    return f"<ul>{rows}</ul>{hint}"


def panels() -> list[str]:
    """Every panel that can be shown."""
    return sorted({*_PLACES, *VIEWS})


def _traces(what: Trace | Job | Advice) -> dict[str, Trace]:
    if isinstance(what, Job):
        return {_below(path, what): trace for path, trace in what.traces.items()}
    trace = what.trace if isinstance(what, Advice) else what
    return {} if trace is None else {_named(trace): trace}


def _known(what: Trace | Job | Advice) -> dict[str, Advice]:
    return {_named(what.trace): what} if isinstance(what, Advice) and what.trace else {}


def _named(trace: Trace) -> str:
    return trace.source.rstrip("/").rpartition("/")[2] or "recording"


def _below(path: str, job: Job) -> str:
    """A path of a job's trace from the folder that all of them are in."""
    folder = commonpath([str(Path(one).parent) for one in job.traces])
    return path.removeprefix(folder).lstrip("/")


def _folded(named: tuple[str, Trace], advice: Advice) -> str:
    """A line that unfolds to the summary."""
    line = f"selftime · {_safe(named[0])} · {in_a_line(advice)}"
    text = summary(advice, root=str(Path.cwd()))
    return f"<details><summary>{line}</summary>\n{text}\n</details>"


def _safe(text: str) -> str:
    return escape(plain(text))
