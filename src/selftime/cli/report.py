"""`selftime report`: writes one HTML file that needs no other files."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import sys
from pathlib import Path
from typing import Annotated

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.error_reporting import print_notice
from selftime.cli.shared_options import TraceName


def add_command(app: typer.Typer) -> None:
    app.command(
        "report",
        short_help="Write one HTML file with advice, tables and timeline.",
        epilog="Example: selftime report selftime-runs -o report.html",
    )(report)


def report(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder of them.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file; - for stdout.")
    ] = Path("report.html"),
    trace_name: TraceName = None,
    shows_source: Annotated[
        bool,
        typer.Option(
            "--source/--no-source", help="Include source lines around the costliest ones."
        ),
    ] = True,
) -> None:
    """Write one HTML file with the advice, all tables and the timeline.

    It opens from disk in any browser, makes no network requests and stays below 5 MB: if there is
    too much data, it has the first rows of long tables and a coarser timeline, and says so.
    """
    from selftime.reports.html import as_html
    from selftime.reports.page_data.assets import assets

    assets()  # report a missing page before reading traces
    traces = trace_reading.read_traces(path, name_part=trace_name, reads_all=True)
    to_file = str(output) != "-"
    if to_file:
        output_writing.refuse_overwriting_inputs(output, (one.source for one in traces.values()))
    named = {Path(n).name if n == path else n: one for n, one in traces.items()}
    with trace_reading.progress_bar("Writing", counts_bytes=False) as progress:
        page = as_html(named, shows_source=shows_source, progress=progress)
    if not to_file:
        output_writing.write_all_bytes(page.encode(), sys.stdout)
        return
    output_writing.write_output(page, to=output)
    print_notice(f"selftime: report written to {output}")
    trace_reading.report_damaged_traces(traces)
