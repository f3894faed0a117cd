"""Which tables a report may carry of a trace, and in which order they matter."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from selftime.reports.html.packing import packed, packed_columns
from selftime.reports.page_data.rows import Prepared, Query, prepare
from selftime.trace import Trace
from selftime.views import VIEWS, View
from selftime.views.base import Subject
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

FIRST: Final = ("health", "overview", "steps", "lines", "operators", "idle")
"""What a reader looks at first."""
QUESTIONS: Final = ("timeline", "occurrences", "slice", "selection", "matches")
"""Views that answer for one place or name: without it none of their tables tells much."""
_CHOSEN: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "operators": tuple({"by": by} for by in ("shape", "line", "stack", "type")),
    "memory_peak": tuple({"by": by} for by in ("category", "operator", "module", "line")),
    "idle": ({"by": "cause", "counted": True},),
}
"""What readers choose for options that take any word."""
_ROWS: Final = (300, 2_000, 20_000)
"""Rows of a long table in its least, its usual and its fullest version."""
_MOST_BYTES: Final = 32 << 20
"""A table that is larger, before it is packed, loses rows."""


@dataclass(frozen=True, slots=True)
class Table:
    """A view's table with some options, in versions of more and more rows."""

    rank: int
    view: str
    options: dict[str, Any]
    versions: tuple[str, ...] = field(repr=False)

    def told(self, version: int) -> dict[str, Any]:
        """What a report carries of it."""
        return {"view": self.view, "options": self.options, "packed": self.versions[version]}


class Wish(NamedTuple):
    """A table that some reader would ask for, and how soon."""

    rank: int
    view: View[Any]
    options: dict[str, Any]


def wishes() -> list[Wish]:
    """The tables of all views, as readers ask for them first and with each other choice."""
    shown = [view for name, view in VIEWS.items() if name not in QUESTIONS]
    plain = [Wish(1 if view.name in FIRST else 3, view, {}) for view in shown]
    return plain + [Wish(5, view, options) for view in shown for options in _choices(view)]


def _choices(view: View[Any]) -> Iterator[dict[str, Any]]:
    """Each other choice of one option."""
    for name, option in view.options.items():
        for choice in option.choices:
            if choice != option.default:
                yield {name: choice}
        if option.default is False:
            yield {name: True}
    yield from _CHOSEN.get(view.name, ())


def table(subject: Subject, wish: Wish) -> Table:
    """The table that is wished for, packed."""
    rank, view, options = wish
    found = prepare(view(subject, **options), view.columns, sums=view.sums)
    height = found.table.height
    sizes = [size for size in _ROWS if size < height]
    if height <= _ROWS[-1]:
        sizes.append(height)
    lacks = view.lacks(subject)
    versions = [page(found, view, options, rows=rows, lacks=lacks) for rows in sizes]
    return Table(rank, view.name, options, tuple(versions))


def page(
    found: Prepared,
    view: View[Any],
    options: dict[str, Any],
    *,
    rows: int | None = None,
    lacks: Sequence[str] = (),
) -> str:
    """The first rows of a table as the `Page` of the contract, packed."""
    defaults = {name: option.default for name, option in view.options.items()}
    written = found.answer(
        Query(rows=rows),
        view=view.name,
        options={**defaults, **options},
        lacks=lacks,
        limit=_MOST_BYTES,
    )
    told = msgspec.json.decode(written)
    units = {column.name: column.unit for column in found.columns}
    return packed({**told, "columns": packed_columns(told["columns"], units)})


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
