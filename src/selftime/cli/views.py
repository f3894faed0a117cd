"""`selftime views`: the views there are, their options and columns."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import json
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from selftime.cli import writing

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.views import View

FORMAT: Final = "selftime.views/1"
"""The name and version of the JSON form."""


class Format(str, Enum):
    """How the list is written."""

    text = "text"
    json = "json"


def join(app: typer.Typer) -> None:
    app.command(
        "views",
        short_help="List the views, their options and columns.",
        epilog="Example: selftime views --format json",
    )(views)


def views(
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.text,
) -> None:
    """List the views: each is one table that `selftime view NAME PATH` prints."""
    from selftime.reports.terminal import listed
    from selftime.views import VIEWS

    if form is Format.json:
        known = {"format": FORMAT, "views": [_described(VIEWS[name]) for name in sorted(VIEWS)]}
        writing.write(json.dumps(known, indent=1) + "\n")
        return
    titles = ((name, VIEWS[name].title) for name in sorted(VIEWS))
    writing.write(listed(titles, width=writing.terminal_width()) + "\n")


def _described(view: "View[Any]") -> dict[str, Any]:
    return {
        "name": view.name,
        "doc": view.doc,
        "needs": list(view.needs),
        "options": [
            {"name": o.name, "default": o.default, "choices": list(o.choices)}
            for o in view.options.values()
        ],
        "columns": [
            {"name": c.name, "unit": c.unit, "doc": c.doc, "nullable": c.nullable}
            for c in view.columns
        ],
    }
