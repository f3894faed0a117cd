"""`selftime explain`: prints the documentation of a rule that finds performance problems."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from typing import Annotated

import typer

from selftime.cli import output_writing


def add_command(app: typer.Typer) -> None:
    app.command(
        "explain",
        short_help="Explain a rule of the advice.",
        epilog="Example: selftime explain slow_input",
    )(explain)


def explain(
    rule: Annotated[
        str | None,
        typer.Argument(
            metavar="[RULE]",
            help="A rule, or an entry of the catalogue such as A1; default: list all rules.",
        ),
    ] = None,
) -> None:
    """Explain a rule: what it means, why it costs, what to do, when it fires."""
    from selftime.reports import explain as explain_report

    width = output_writing.terminal_width()
    page = (
        explain_report.rule_list(width=width)
        if rule is None
        else explain_report.rule_pages(rule, width=width)
    )
    output_writing.write_output(page)
