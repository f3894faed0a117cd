"""The slices behind the rows that cost most, as the page asks for them when a row is opened."""

from collections.abc import Iterator
from typing import Any, Final

from selftime.reports.html.tables import Wish
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.views.kernels import kernels
from selftime.views.lines import lines
from selftime.views.operators import operators

__all__ = ["behind"]

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
_PATIENCE: Final = 300_000
"""Slices to look at for one row of a table: of a larger trace fewer rows are looked behind."""


def behind(trace: Trace) -> Iterator[Wish]:
    """All slices, those of the heaviest operators and kernels, what ran on the hottest lines."""
    view = VIEWS["occurrences"]
    yield Wish(_RANK, view, {"top": _ALL})
    yield from (Wish(rank, view, options) for rank, options in _asked(trace))


def _asked(trace: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    """The options of the view, and after what else they are carried."""
    share = _PATIENCE / max(_PATIENCE, trace.slices.height)
    rows = operators(trace, top=round(_MOST_ROWS * share)).select("name", "kind").rows()
    heaviest = [{"name": name, "kind": kind} for name, kind in rows if kind != "memory"]
    named = kernels(trace, top=round(_MOST_ROWS * share))["name"].cast(str).to_list()
    heaviest += [{"name": name, "kind": "kernel"} for name in named]
    for of in heaviest:
        yield _RANK, {**of, "top": _LISTED}
        yield from ((_RANK + 1, {**of, "by": split}) for split in _SPLITS)
    for of in _hottest(trace, round(_MOST_LINES * share)):
        yield _RANK, {**of, "by": "name"}


def _hottest(trace: Trace, count: int) -> Iterator[dict[str, Any]]:
    places = lines(trace).drop_nulls(["file", "line"]).head(count).select("file", "line")
    yield from places.iter_rows(named=True)
