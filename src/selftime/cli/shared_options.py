"""Options and arguments that several commands share."""

from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from typer.core import TyperCommand

from selftime.errors import UsageError

FORMAT_OPTION: Final[Any] = typer.Option(
    "--format", help="Output format; default: by FILE's suffix, else text."
)
"""The option `--format`; without it, `output_writing.format_for_file` derives the format from
the output file's suffix."""

OutputFile: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")
]
TraceName: TypeAlias = Annotated[
    str | None, typer.Option("--trace", metavar="NAME", help="Only traces with this in their name.")
]
PrintedRows: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Rows of a printed table; 0 prints all.")
]
TracePath: TypeAlias = Annotated[
    str, typer.Argument(metavar="PATH", help="A trace, a folder of them, a pattern or an address.")
]

DEFAULT_PRINTED_ROWS: Final = 50
"""Default of `--rows`: largest number of rows of a table printed to a terminal."""


_MODULE_OPTIONS: Final = ("-m", "--module")


def parse_share(option: str, text: str) -> float:
    """Returns an option's ratio as a number: 0.05 for the text `5%` or `0.05`.

    Raises:
        UsageError: The text is not a share.
    """
    number, percent, rest = text.partition("%")
    try:
        found = float(number) / (100 if percent else 1)
    except ValueError:
        found = -1.0
    if rest or not (isfinite(found) and found >= 0):
        raise UsageError(f"`{option} {text[:40]}`: write a share such as `5%` or `0.05`")
    return found


class ProgramCommand(TyperCommand):
    """A command that runs a program; arguments after SCRIPT or `-m MODULE` go to that program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with_value = {
            word for p in self.params if not getattr(p, "is_flag", True) for word in p.opts
        }
        return super().parse_args(ctx, separate_program_arguments(args, with_value))


def separate_program_arguments(args: list[str], options_with_value: set[str]) -> list[str]:
    """Inserts `--` after `-m MODULE`, so that all arguments after it go to the program."""
    at = 0
    while at < len(args) and args[at].startswith("-") and args[at] != "--":
        word = args[at]
        if word in options_with_value:
            at += 1
        at += 1
        if word in _MODULE_OPTIONS or word.startswith(("-m", "--module=")):
            return [*args[:at], "--", *args[at:]]
    return args
