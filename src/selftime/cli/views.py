"""`selftime views`: lists the available views, with their options and columns."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import json
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from selftime.cli import output_writing

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.views import View

VIEW_LIST_FORMAT: Final = "selftime.views/1"
"""Name and version of the JSON that `selftime views --format json` prints."""


class OutputFormat(str, Enum):
    """Output formats of `selftime views`."""

    text = "text"
    json = "json"


def add_command(app: typer.Typer) -> None:
    app.command(
        "views",
        short_help="List the views, their options and columns.",
        epilog="Example: selftime views --format json",
    )(views)


def views(
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="Output format.")
    ] = OutputFormat.text,
) -> None:
    """List the views: each is one table that `selftime view NAME PATH` prints."""
    from selftime.reports.terminal import two_column_text
    from selftime.views import VIEWS

    if output_format is OutputFormat.json:
        known = {
            "format": VIEW_LIST_FORMAT,
            "views": [_view_description(VIEWS[name]) for name in sorted(VIEWS)],
        }
        output_writing.write_output(json.dumps(known, indent=1) + "\n")
        return
    titles = ((name, VIEWS[name].title) for name in sorted(VIEWS))
    output_writing.write_output(
        two_column_text(titles, width=output_writing.terminal_width()) + "\n"
    )


def _view_description(view: "View[Any]") -> dict[str, Any]:
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
