"""`selftime hang`: says why a job hangs, from dumps of the Flight Recorder and ledgers."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
from enum import Enum
from typing import Annotated

import typer

from selftime.cli import output_writing
from selftime.cli.shared_options import FORMAT_OPTION, OutputFile


class OutputFormat(str, Enum):
    """Output formats of `selftime hang`."""

    text = "text"
    json = "json"


def add_command(app: typer.Typer) -> None:
    app.command(
        "hang",
        short_help="Say why a job of several ranks hangs: who did not enter which collective.",
        epilog="Example: selftime hang /tmp/dumps selftime-runs",
    )(hang)


def hang(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Dumps of PyTorch's Flight Recorder, ledgers of `selftime run`, or folders.",
        ),
    ],
    output_format: Annotated[OutputFormat | None, FORMAT_OPTION] = None,
    output: OutputFile = None,
) -> None:
    """Say which rank never entered which collective, who waits for it, and where it stands instead.

    Dumps of PyTorch's Flight Recorder are recognised by their content, as pickles or JSON; nothing
    that a pickle holds is run. Ledgers that `selftime run` left tell on which line each rank is.
    """
    from selftime.analysis.hang import hang as judge_hang
    from selftime.reports.hang import as_json, as_text

    output_format = output_format or output_writing.format_for_file(output, OutputFormat.text)
    found = judge_hang(*paths)
    evidence = found.evidence
    sources = [dump.source for dump in evidence.dumps.values()]
    sources += [seen.source for seen in evidence.sightings.values()]
    output_writing.refuse_overwriting_inputs(output, sources)
    if output_format is OutputFormat.json:
        page = as_json(found)
    else:
        page = as_text(
            found,
            width=80 if output is not None else output_writing.terminal_width(),
            colour=output is None and output_writing.uses_colour(),
            root=os.getcwd(),  # noqa: PTH109 - as text
        )
    output_writing.write_output(page, to=output)
