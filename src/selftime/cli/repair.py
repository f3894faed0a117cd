"""`selftime repair`: a damaged trace as clean JSON."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from selftime.cli import reading, writing


class Format(str, Enum):
    """How the command says what it did."""

    text = "text"
    json = "json"


def join(app: typer.Typer) -> None:
    app.command(
        "repair",
        short_help="Write a damaged trace as clean JSON that every viewer reads.",
        epilog="Example: selftime repair broken.json -o clean.json.gz",
    )(repair)


def repair(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The new trace; .gz packs it."),
    ],
    form: Annotated[
        Format, typer.Option("--format", help="How to say what was mended.")
    ] = Format.text,
) -> None:
    """Write a trace anew, with what is sound and what can be mended, and say what was wrong.

    Sound events are copied as they stand, arguments that selftime does not know included. The input
    stays as it is.
    """
    from selftime.ingest.text.parts import read_parts
    from selftime.reports import rewrite
    from selftime.reports.trace_file import new_trace

    with new_trace(output, path) as trace, reading.bar("Repairing") as progress:
        found = read_parts(path, trace, progress)
    rows = rewrite.mended(found.faults)
    told = {
        "path": path,
        "output": str(output),
        "events": found.events,
        "lost": sum(row["lost"] for row in rows),
        "mended": rows,
    }
    as_json = form is Format.json
    said = rewrite.as_json("repair", **told) if as_json else "\n".join(_lines(told)) + "\n"
    writing.write(said, err=writing.is_stdout(output))


def _lines(told: dict[str, Any]) -> list[str]:
    from selftime.reports import rewrite
    from selftime.reports.plain import plain
    from selftime.units import count_text

    lines = rewrite.mended_lines(told["mended"])
    begin = f"{told['output']}: {count_text(told['events'])} events"
    if not lines:
        return [plain(f"{begin}; nothing was wrong")]
    lost = told["lost"]
    end = f"{count_text(lost)} {'event' if lost == 1 else 'events'} could not be kept"
    return [plain(f"{begin}; {end}; mended:"), *(plain(f"  {line}") for line in lines)]
