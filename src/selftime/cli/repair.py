"""`selftime repair`: write a valid JSON copy of a damaged trace."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from selftime.cli import output_writing, trace_reading
from selftime.errors import UsageError


class SummaryFormat(str, Enum):
    """Formats of the summary that `repair`, `cut`, `redact` and `export` print."""

    text = "text"
    json = "json"


def add_command(app: typer.Typer) -> None:
    app.command(
        "repair",
        short_help="Write a damaged trace as valid JSON that every viewer reads.",
        epilog="Example: selftime repair broken.json -o clean.json.gz",
    )(repair)


def repair(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The new trace; .gz compresses it."),
    ],
    summary_format: Annotated[
        SummaryFormat, typer.Option("--format", help="Format of the summary.")
    ] = SummaryFormat.text,
) -> None:
    """Write the intact and repairable events of a trace to a new file, and list the faults.

    Intact events are copied unchanged, including arguments that selftime does not know. The input
    file stays unchanged.
    """
    from selftime.ingest.text.trace_text_stream import stream_trace_text
    from selftime.reports import rewrite
    from selftime.reports.trace_file import open_trace_writer

    _refuse_folder(path)
    with (
        open_trace_writer(output, path) as trace,
        trace_reading.progress_bar("Repairing") as progress,
    ):
        found = stream_trace_text(path, trace, progress)
    rows = rewrite.fault_rows(found.faults)
    summary = {
        "path": path,
        "output": str(output),
        "events": found.event_count,
        "lost": sum(row["lost"] for row in rows),
        "mended": rows,
    }
    as_json = summary_format is SummaryFormat.json
    answer = (
        rewrite.as_json("repair", **summary)
        if as_json
        else "\n".join(_repair_summary_lines(summary)) + "\n"
    )
    output_writing.write_output(answer, to_stderr=output_writing.is_stdout(output))


def _refuse_folder(path: str) -> None:
    from selftime.ingest.trace_paths import trace_files

    if not Path(path).is_dir():
        return
    count = len(trace_files(path).files)
    recordings = "1 recording" if count == 1 else f"{count} recordings"
    raise UsageError(f"`{path}` is a folder with {recordings}; name the file to repair")


def _repair_summary_lines(summary: dict[str, Any]) -> list[str]:
    from selftime.reports import rewrite
    from selftime.reports.plain import plain
    from selftime.units import count_text

    lines = rewrite.fault_lines(summary["mended"])
    begin = f"{summary['output']}: {count_text(summary['events'])} events"
    if not lines:
        return [plain(f"{begin}; no faults found")]
    lost = summary["lost"]
    end = f"{count_text(lost)} {'event' if lost == 1 else 'events'} could not be kept"
    return [plain(f"{begin}; {end}; repaired:"), *(plain(f"  {line}") for line in lines)]
