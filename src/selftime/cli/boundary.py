"""Where errors become what the user reads: one sentence on stderr, exit status 2."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from typing import Any, Final

import typer
from typer.core import TyperGroup

from selftime.errors import SelftimeError

__all__ = ["OneSentence", "say"]


_ORDER: Final = ("run", "advise", "view", "views", "explain")
"""The commands as help lists them: in the order in which they are first needed."""


class OneSentence(TyperGroup):
    """The commands; an error that selftime raises on purpose ends them without a traceback."""

    def list_commands(self, _ctx: Any) -> list[str]:
        return [name for name in _ORDER if name in self.commands]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SelftimeError as error:
            say(f"Error: {error}")
            raise typer.Exit(2) from None


def say(sentence: str) -> None:
    """One line on stderr, harmless whatever names it holds."""
    from selftime.reports.plain import plain

    typer.echo(plain(sentence), err=True)
