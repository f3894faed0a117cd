"""`selftime explain`: a rule's page."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from typing import Annotated

import typer

from selftime.cli import writing

__all__ = ["join"]


def join(app: typer.Typer) -> None:
    app.command(
        "explain",
        short_help="Explain a rule of the advice.",
        epilog="Example: selftime explain slow_input",
    )(explain)


def explain(
    rule: Annotated[
        str | None, typer.Argument(metavar="[RULE]", help="The rule; all are listed without it.")
    ] = None,
) -> None:
    """Explain a rule: what it means, why it costs, what to do, when it fires."""
    from selftime.advice import registry

    if rule is None:
        known = registry.rules()
        widest = max(map(len, known), default=0)
        writing.write("".join(f"{name:{widest}}  {r.title}\n" for name, r in sorted(known.items())))
        return
    page = registry.find(rule)
    writing.write(f"# {page.name}: {page.doc}\n")
