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
    from selftime.advice import rule_registry
    from selftime.advice.bottleneck_catalogue import BOTTLENECKS, BOTTLENECKS_WITHOUT_RULE
    from selftime.reports.terminal import two_column_text, wrap_paragraphs

    width = output_writing.terminal_width()
    if rule is None:
        titles = (
            (name, found.title) for name, found in sorted(rule_registry.rules_by_name().items())
        )
        output_writing.write_output(two_column_text(titles, width=width) + "\n")
        return
    entry = rule.upper()
    if entry in BOTTLENECKS_WITHOUT_RULE:
        text = f"{entry}, {BOTTLENECKS[entry]}: {BOTTLENECKS_WITHOUT_RULE[entry]}"
        output_writing.write_output(wrap_paragraphs(text, width=width) + "\n")
        return
    covering = [found for found in rule_registry.rules_by_name().values() if entry in found.covers]
    for page in covering or [rule_registry.find(rule)]:
        output_writing.write_output(
            wrap_paragraphs(f"# {page.name}\n\n{page.doc}", width=width) + "\n"
        )
