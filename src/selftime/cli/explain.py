"""`selftime explain`: a rule's page."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from typing import Annotated

import typer

from selftime.cli import writing


def join(app: typer.Typer) -> None:
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
            help="The rule, or an entry of the catalogue such as A1; all are listed without it.",
        ),
    ] = None,
) -> None:
    """Explain a rule: what it means, why it costs, what to do, when it fires."""
    from selftime.advice import registry
    from selftime.advice.catalogue import ENTRIES, WITHOUT_RULE
    from selftime.reports.terminal import folded, listed

    width = writing.terminal_width()
    if rule is None:
        titles = ((name, found.title) for name, found in sorted(registry.rules().items()))
        writing.write(listed(titles, width=width) + "\n")
        return
    entry = rule.upper()
    if entry in WITHOUT_RULE:
        told = f"{entry}, {ENTRIES[entry]}: {WITHOUT_RULE[entry]}"
        writing.write(folded(told, width=width) + "\n")
        return
    covering = [found for found in registry.rules().values() if entry in found.covers]
    for page in covering or [registry.find(rule)]:
        writing.write(folded(f"# {page.name}\n\n{page.doc}", width=width) + "\n")
