"""`selftime doctor`: checks whether this machine can record PyTorch programs."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import json
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from selftime.cli import output_writing, trace_reading

if TYPE_CHECKING:  # rich stays out until the command runs
    from rich.console import RenderableType

    from selftime.capture.doctor import DoctorFinding, FindingState, MachineExamination

_COLOUR_BY_CHECK_STATE: Final = {
    "ok": "green",
    "warning": "yellow",
    "problem": "bold red",
    "unknown": "magenta",
}


class OutputFormat(str, Enum):
    """Output formats of `selftime doctor`."""

    text = "text"
    json = "json"


def add_command(app: typer.Typer) -> None:
    app.command(
        "doctor",
        short_help="Find out whether this machine can record, and if not, why.",
        epilog="Example: selftime doctor",
    )(doctor)


def doctor(
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="Output format.")
    ] = OutputFormat.text,
    seconds: Annotated[
        float, typer.Option(min=1, metavar="S", help="Longest time of each test.")
    ] = 60.0,
) -> None:
    """Find out whether this machine can record, and if not, why and what to do.

    Makes small recordings in separate processes, so that hangs and crashes are reported and do no
    harm. The exit status is 0 if programs can be recorded, 1 if not, or if the machine has a device
    whose work is not recorded.
    """
    from selftime.capture.doctor import examine_machine

    with trace_reading.progress_bar("Examining", counts_bytes=False) as advance:
        found = examine_machine(seconds=seconds, advance=advance)
    if output_format is OutputFormat.json:
        output_writing.write_output(json.dumps(found.to_dict(), indent=1) + "\n")
    else:
        width, colour = output_writing.terminal_width(), output_writing.uses_colour()
        output_writing.write_output(_examination_text(found, width=width, colour=colour))
    raise typer.Exit(0 if found.can_record else 1)


def _examination_text(examination: "MachineExamination", *, width: int, colour: bool) -> str:
    from selftime.reports.terminal import render_as_text

    return render_as_text(*_examination_text_blocks(examination), width=width, colour=colour)


def _examination_text_blocks(examination: "MachineExamination") -> list["RenderableType"]:
    from rich.table import Table
    from rich.text import Text

    from selftime.capture.doctor import FindingSubject

    parts: list[RenderableType] = []
    column = max(len(finding.check) for finding in examination.findings)
    for subject in FindingSubject:
        of_subject = [finding for finding in examination.findings if finding.subject is subject]
        if not of_subject:
            continue
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=len("  warning"))
        table.add_column(width=column)
        table.add_column(overflow="fold")
        for finding in of_subject:
            table.add_row(*_finding_table_row(finding))
        parts += [Text(subject.value, style="bold"), table, Text()]
    return [*parts, Text(_examination_verdict_sentence(examination))]


def _finding_table_row(finding: "DoctorFinding") -> tuple["RenderableType", ...]:
    from rich.text import Text

    from selftime.reports.plain import plain

    text = Text(plain(finding.seen))
    if finding.cure is not None:
        text.append(f"\n{plain(finding.cure)}", style="italic")
    return _coloured_check_state(finding.state), Text(finding.check), text


def _coloured_check_state(state: "FindingState") -> "RenderableType":
    from rich.text import Text

    return Text(f"  {state.value}", style=_COLOUR_BY_CHECK_STATE[state.value])


def _examination_verdict_sentence(examination: "MachineExamination") -> str:
    from selftime.capture.doctor import FindingState

    states = [finding.state for finding in examination.findings]
    problems, warnings = states.count(FindingState.problem), states.count(FindingState.warning)
    if problems:
        verb = "prevents" if problems == 1 else "prevent"
        return f"{_count_and_noun_text(problems, 'problem')} {verb} recording."
    if warnings:
        return f"This machine can record, with {_count_and_noun_text(warnings, 'warning')}."
    return "This machine can record."


def _count_and_noun_text(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
