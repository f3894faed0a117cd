"""The pages of the reference on views and on the tables of a trace, from their declarations."""

from typing import Any, Final

from reference_words import columns, table

from selftime.analysis.recording_requirements import REQUIREMENT_BY_NEED
from selftime.schema import TABLES
from selftime.units import UNITS
from selftime.views import VIEWS, View
from selftime.views.view_declaration import Option

__all__ = ["pages"]

VIEWS_ARE: Final = """\
A view answers one question about a trace, or about the ranks of a job, with a table. `selftime view
NAME PATH` prints it, `trace.view("NAME")` gives it as a Polars table, and the page, a report and
the advice show the same figures."""
TABLES_ARE: Final = """\
What `selftime.load` makes of a file. `trace.slices` is a Polars table with the columns below, and
so is every other one. A column that may be unknown holds null where the trace does not tell."""
UNITS_ARE: Final = """\
Times are integer nanoseconds: `ns` is a duration, `instant` a time since the trace's origin. A
`ratio` of 1 is the whole, a `percent` of 100 too. Units: """


def pages() -> dict[str, str]:
    """A page for each view, the list of them, and the page of a trace's tables."""
    views = {f"views/{name}.md": of_view(VIEWS[name]) for name in sorted(VIEWS)}
    return {"views/README.md": listed(), **views, "tables.md": of_tables()}


def listed() -> str:
    rows = [
        [f"[{name}]({name}.md)", VIEWS[name].title, scope(VIEWS[name])] for name in sorted(VIEWS)
    ]
    parts = ["# Views", VIEWS_ARE, table(["view", "answers", "of"], rows), units()]
    return "\n\n".join(parts) + "\n"


def scope(view: View[Any]) -> str:
    return "the ranks of a job" if view.compares_ranks else "a trace"


def units() -> str:
    return UNITS_ARE + ", ".join(f"`{unit}`" for unit in UNITS) + "."


def of_view(view: View[Any]) -> str:
    told = [f"# {view.name}", view.doc.strip()]
    told += [f"```text\nselftime view {view.name} selftime-runs\n```"]
    if view.options:
        rows = [[f"`{o.name}`", takes(o), default(o)] for o in view.options.values()]
        told += ["## Options", table(["option", "takes", "default"], rows)]
    told += ["## Columns", columns(view.columns)]
    if view.needs:
        needs = "\n".join(f"- {REQUIREMENT_BY_NEED[need].remedy}" for need in view.needs)
        told += ["## Needs", "A recording with", needs]
    return "\n\n".join(told) + "\n"


def takes(option: Option) -> str:
    words = option.choices or option.joinable_words
    if words:
        joined = ", one or several joined by `+`" if option.joinable_words else ""
        return ", ".join(f"`{word}`" for word in words) + joined
    if isinstance(option.default, bool):
        return "`true`, `false`"
    return "a number" if isinstance(option.default, int | float) else "text"


def default(option: Option) -> str:
    return "" if option.default in (None, "") else f"`{str(option.default).lower()}`"


def of_tables() -> str:
    told = ["# Tables of a trace", TABLES_ARE, units()]
    for one in TABLES.values():
        told += [f"## {one.name}", one.doc, columns(one.columns)]
    return "\n\n".join(told) + "\n"
