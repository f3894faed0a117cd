"""`selftime doctor`: can this machine record, and if not, why?"""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import json
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from selftime.cli import reading, writing

if TYPE_CHECKING:  # rich stays out until the command runs
    from rich.console import RenderableType

    from selftime.capture.doctor import Examination, Finding, State

_COLOURS: Final = {"ok": "green", "warning": "yellow", "problem": "bold red", "unknown": "magenta"}


class Format(str, Enum):
    """How the answer is written."""

    text = "text"
    json = "json"


def join(app: typer.Typer) -> None:
    app.command(
        "doctor",
        short_help="Find out whether this machine can record, and if not, why.",
        epilog="Example: selftime doctor",
    )(doctor)


def doctor(
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.text,
    seconds: Annotated[
        float, typer.Option(min=1, metavar="S", help="Longest time for each trial.")
    ] = 60.0,
) -> None:
    """Find out whether this machine can record, and if not, why and what to do.

    Small recordings are made in processes of their own: what hangs or crashes there is told, and
    does no harm. The exit status is 0 if programs can be recorded here, 1 if not, or if a device
    is here and its work is not recorded.
    """
    from selftime.capture.doctor import examine

    with reading.bar("Examining", counts_bytes=False) as advance:
        found = examine(seconds=seconds, advance=advance)
    if form is Format.json:
        writing.write(json.dumps(found.to_dict(), indent=1) + "\n")
    else:
        width, colour = writing.terminal_width(), writing.is_colourful()
        writing.write(_page(found, width=width, colour=colour))
    raise typer.Exit(0 if found.can_record else 1)


def _page(found: "Examination", *, width: int, colour: bool) -> str:
    from selftime.reports.terminal import sheet

    return sheet(*_parts(found), width=width, colour=colour)


def _parts(found: "Examination") -> list["RenderableType"]:
    from rich.table import Table
    from rich.text import Text

    from selftime.capture.doctor import Subject

    parts: list[RenderableType] = []
    column = max(len(finding.check) for finding in found.findings)
    for subject in Subject:
        told = [finding for finding in found.findings if finding.subject is subject]
        if not told:
            continue
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=len("  warning"))
        table.add_column(width=column)
        table.add_column(overflow="fold")
        for finding in told:
            table.add_row(*_row(finding))
        parts += [Text(subject.value, style="bold"), table, Text()]
    return [*parts, Text(_verdict(found))]


def _row(finding: "Finding") -> tuple["RenderableType", ...]:
    from rich.text import Text

    from selftime.reports.plain import plain

    text = Text(plain(finding.seen))
    if finding.cure is not None:
        text.append(f"\n{plain(finding.cure)}", style="italic")
    return _state(finding.state), Text(finding.check), text


def _state(state: "State") -> "RenderableType":
    from rich.text import Text

    return Text(f"  {state.value}", style=_COLOURS[state.value])


def _verdict(found: "Examination") -> str:
    from selftime.capture.doctor import State

    states = [finding.state for finding in found.findings]
    problems, warnings = states.count(State.problem), states.count(State.warning)
    told = "This machine can record"
    if problems:
        told = f"{_counted(problems, 'problem')} in the way of a recording"
    elif warnings:
        told = f"{told}, with {_counted(warnings, 'warning')}"
    return f"{told}."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
