"""`selftime report`: one self-contained HTML file."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftime.cli import reading, writing
from selftime.cli.boundary import say
from selftime.cli.options import TraceName
from selftime.errors import UsageError
from selftime.output_file import told_in_a_sentence

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.trace import Trace


def join(app: typer.Typer) -> None:
    app.command(
        "report",
        short_help="Write one HTML file with all of it, to open or to send.",
        epilog="Example: selftime report selftime-runs -o report.html",
    )(report)


def report(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder of them.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file; - is stdout.")
    ] = Path("report.html"),
    trace: TraceName = None,
    source: Annotated[
        bool, typer.Option(help="Carry the program's lines around what costs most.")
    ] = True,
) -> None:
    """Write one HTML file with the answer, all tables and the timeline.

    It opens from disk in any browser, asks nothing of the network and stays below 5 MB: of long
    tables it carries the first rows, of a long timeline one that is thinned, and says so. Of
    several traces it carries all, the most telling of each first.
    """
    from selftime.reports.html import as_html
    from selftime.reports.page_data.assets import assets

    assets()  # so that a page that is not built is told before a trace is read
    traces = reading.read_traces(path, choice=trace, every=True)
    to_file = str(output) != "-"
    if to_file:
        spare(traces.values(), output)
    named = {Path(n).name if n == path else n: one for n, one in traces.items()}
    with reading.bar("Writing", counts_bytes=False) as progress:
        page = as_html(named, shows_source=source, progress=progress)
    if not to_file:
        writing.send(page.encode(), sys.stdout)
        return
    writing.write(page, to=output)
    say(f"selftime: report written to {output}")
    reading.tell_doubts(traces)


def spare(traces: "Iterable[Trace]", output: Path) -> None:
    """Refuse to write over what is read."""
    with told_in_a_sentence(output):
        for one in traces:
            if output.exists() and Path(one.source).exists() and output.samefile(one.source):
                raise UsageError(f"`{output}` is the trace itself; name another file with `-o`")
