"""`selftime views`: lists the available views, with their options and columns."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from typing import Annotated

import typer

from selftime.cli import output_writing


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
    from selftime.reports import views as views_report

    if output_format is OutputFormat.json:
        page = views_report.as_json()
    else:
        page = views_report.as_text(width=output_writing.terminal_width())
    output_writing.write_output(page)
