"""`selftime ledger`: prints the log of what a run's wall time was spent on."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
from enum import Enum
from typing import Annotated

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.shared_options import FORMAT_OPTION, OutputFile, TraceName
from selftime.errors import UsageError


class OutputFormat(str, Enum):
    """Output formats of `selftime ledger`."""

    text = "text"
    json = "json"


def add_command(app: typer.Typer) -> None:
    app.command(
        "ledger",
        short_help="Say what the whole run spent its wall time on.",
        epilog="Example: selftime ledger selftime-runs --format json",
    )(ledger)


def ledger(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A ledger file, a trace in the same folder as its ledger, or a folder of ledgers.",
        ),
    ],
    output_format: Annotated[OutputFormat | None, FORMAT_OPTION] = None,
    output: OutputFile = None,
    trace_name: TraceName = None,
) -> None:
    """Say what a whole run spent its wall time on: its parts, kinds of steps and slow steps.

    The numbers are read from the run's ledger: the log of what the run's wall time was spent on.
    `selftime run` writes it beside the recording, in a file that ends in `.run.jsonl`.
    """
    from selftime.reports import ledger as ledger_report

    output_format = output_format or output_writing.format_for_file(output, OutputFormat.text)
    trace = trace_reading.read_only_trace(path, name_part=trace_name)
    output_writing.refuse_overwriting_inputs(output, [trace.source, trace.run.source])
    if not trace.run.source:
        raise UsageError(
            f"`{path}` has no ledger (`.run.jsonl`) of its run beside it; `selftime run` writes "
            "one, and it must stay in the trace's folder"
        )
    if output_format is OutputFormat.json:
        page = ledger_report.as_json_text(trace.run)
    else:
        page = ledger_report.as_text(
            trace.run,
            width=output_writing.terminal_width(),
            colour=output is None and output_writing.uses_colour(),
            root=os.getcwd(),  # noqa: PTH109 - as text
            slow_step_differences=trace_reading.slow_step_differences(trace),
        )
    output_writing.write_output(page, to=output)
