"""`selftime doctor`: checks whether this machine can record PyTorch programs."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from typing import Annotated

import typer

from selftime.cli import output_writing, trace_reading


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
    from selftime.reports import doctor as doctor_report

    with trace_reading.progress_bar("Examining", counts_bytes=False) as advance:
        found = examine_machine(seconds=seconds, advance=advance)
    if output_format is OutputFormat.json:
        output_writing.write_output(doctor_report.as_json(found))
    else:
        width, colour = output_writing.terminal_width(), output_writing.uses_colour()
        output_writing.write_output(doctor_report.as_text(found, width=width, colour=colour))
    raise typer.Exit(0 if found.can_record else 1)
