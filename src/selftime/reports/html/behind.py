"""The slices behind the rows that cost most, as the page asks for them when a row is opened."""

from collections.abc import Iterator
from typing import Any, Final

from selftime.reports.html.tables import Wish
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.views.kernels import kernels
from selftime.views.lines import lines
from selftime.views.operators import operators

_RANK: Final = 8
"""After all tables and resolutions of the timeline."""
_ALL: Final = 10_000
"""Slices that the panel of all slices asks for."""
_LISTED: Final = 50
"""Slices that an opened row lists."""
_SPLITS: Final = ("name", "duration", "line", "stack", "shape", "thread", "step")
"""By what an opened row tells them apart."""
_MOST_ROWS: Final = 12
_MOST_LINES: Final = 30
_MOST_SLICES: Final = 500_000
"""Behind the rows of a larger trace one looks with a server: it would take minutes here."""


def behind(trace: Trace) -> Iterator[Wish]:
    """All slices, those of the heaviest operators and kernels, what ran on the hottest lines."""
    view = VIEWS["occurrences"]
    yield Wish(_RANK, view, {"top": _ALL})
    if trace.slices.height <= _MOST_SLICES:
        yield from (Wish(rank, view, options) for rank, options in _asked(trace))


def _asked(trace: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    """The options of the view, and after what else they are carried."""
    rows = operators(trace, top=_MOST_ROWS).select("name", "kind").rows()
    heaviest = [{"name": name, "kind": kind} for name, kind in rows if kind != "memory"]
    named = kernels(trace, top=_MOST_ROWS)["name"].cast(str).to_list()
    heaviest += [{"name": name, "kind": "kernel"} for name in named]
    for of in heaviest:
        yield _RANK, {**of, "top": _LISTED}
        yield from ((_RANK + 1, {**of, "by": split}) for split in _SPLITS)
    places = lines(trace).drop_nulls(["file", "line"]).head(_MOST_LINES).select("file", "line")
    for of in places.iter_rows(named=True):
        yield _RANK, {**of, "by": "name"}
