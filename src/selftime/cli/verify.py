"""`selftime verify`: what a repair achieved, against what was predicted."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftime.cli import reading, writing
from selftime.errors import SelftimeError

if TYPE_CHECKING:  # NumPy stays out until a command runs
    from selftime.bench import Bench


class Format(str, Enum):
    """How the answer is written."""

    text = "text"
    json = "json"


def join(app: typer.Typer) -> None:
    app.command(
        "verify",
        short_help="Compare what a fix saved with what was predicted.",
        epilog="Example: selftime verify before.json.gz after.json.gz",
    )(verify)


def verify(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The trace with the finding.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The trace after the repair.")],
    bench: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Both programs timed: what `selftime bench -o` wrote."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.text,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add the answer to this file, a line of JSON each."),
    ] = None,
) -> None:
    """Hold the steps of two recordings against what the findings that are gone promised.

    With `--bench`, hold the unprofiled steps that `selftime bench` timed against it as well.
    """
    from selftime.advice.verify import verify as compare
    from selftime.reports.verify import as_text

    timed = None if bench is None else _read(bench)
    found = compare(reading.read_one(before), reading.read_one(after), timed)
    line = found.to_json() + "\n"
    writing.write(line if form is Format.json else as_text(found, width=writing.terminal_width()))
    if keep is not None:
        _add(keep, line)


def _read(file: Path) -> "Bench":
    from selftime.bench.result import read_bench

    return read_bench(file)


def _add(file: Path, line: str) -> None:
    try:
        with file.open("a", encoding="utf-8") as kept:
            kept.write(line)
    except OSError as error:
        raise SelftimeError(
            f"`{file}` cannot be written: {error.strerror}; choose another place with `--keep`"
        ) from error
