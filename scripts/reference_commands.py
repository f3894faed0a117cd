"""The pages of the reference on commands, from the command line itself."""

from typing import Any, Final

import typer
from reference_words import table

from selftime.cli import app

__all__ = ["pages"]

WHAT: Final = """\
Every command with what it takes, as `selftime COMMAND --help` tells it. The views that `selftime
view` prints have [pages of their own](views/README.md), and so has [the JSON](../formats.md) that
commands write."""


def pages() -> dict[str, str]:
    """The page of all commands."""
    root = typer.main.get_command(app)
    listed: Any = root
    named = {name: listed.get_command(None, name) for name in listed.list_commands(None)}
    rows = [[f"[`selftime {name}`](#selftime-{name})", first(one)] for name, one in named.items()]
    told = ["# Commands", WHAT, table(["command", "does"], rows)]
    for name, command in named.items():
        told += described(name, command)
    return {"commands.md": "\n\n".join(told) + "\n"}


def described(name: str, command: Any) -> list[str]:
    """The chapter on one command: usage, what it does, what it takes, an example."""
    context = command.context_class(command, info_name=f"selftime {name}")
    usage = " ".join(context.get_usage().split()).removeprefix("Usage: ")
    records = [param.get_help_record(context) for param in command.get_params(context)]
    rows = [[f"`{words}`", text] for words, text in filter(None, records) if "--help" not in words]
    example = (command.epilog or "").removeprefix("Example: ")
    parts = [f"## selftime {name}", f"```text\n{usage}\n```", paragraphs(command.help or "")]
    parts += [table(["takes", "which is"], rows)] if rows else []
    return [*parts, f"```text\n{example}\n```"] if example else parts


def first(command: Any) -> str:
    return str(command.short_help or command.help or "").partition("\n")[0]


def paragraphs(text: str) -> str:
    """Help as it stands, without the mark that keeps its lines in a terminal."""
    return text.replace("\b\n", "").strip()
