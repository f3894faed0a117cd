"""`selftime redact`: a trace that tells nothing of who recorded it, and where."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selftime.cli import reading, writing
from selftime.cli.repair import Format

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.names.private_data import Pattern
    from selftime.rewrite.hiding import Replacements


def join(app: typer.Typer) -> None:
    app.command(
        "redact",
        short_help="Write a trace without folders, hosts, users and commands.",
        epilog="Example: selftime redact trace.json.gz -o shared.json.gz --replace 'acme\\w*'",
    )(redact)


def redact(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder of them.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The new trace; .gz packs it."),
    ],
    replace: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Hide this, too, wherever it stands; repeatable."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Leave what this is found in; repeatable."),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="Hide names of your own files and functions, too.")
    ] = False,
    trace: Annotated[
        str | None, typer.Option(metavar="NAME", help="The one with this in its name.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="How to say what was hidden.")
    ] = Format.text,
) -> None:
    """Write a trace in which words stand for what is private; times and structure stay.

    Equal words stand for equal texts, in this file only. Look through the result before you send
    it: a word that looks like any other is not found without `--replace`.
    """
    place = reading.file_of(path, choice=trace)
    told = _write(place, output, replace or [], keep or [], hides_names=names)
    if form is Format.json:
        from selftime.reports import rewrite

        said = rewrite.as_json("redact", **told)
    else:
        said = "\n".join(_lines(told)) + "\n"
    writing.write(said, err=writing.is_stdout(output))


def _write(
    place: str, output: Path, replace: list[str], keep: list[str], *, hides_names: bool
) -> dict[str, Any]:
    """Write the trace, and tell what was hidden."""
    from selftime.ingest.snapshots.pickles import snapshot_values
    from selftime.ingest.text.parts import read_parts
    from selftime.names import compile_pattern
    from selftime.reports import rewrite
    from selftime.reports.trace_file import new_trace
    from selftime.rewrite.hiding import PrivateWords, Redactor, Replacements

    hidden = Replacements([compile_pattern(text) for text in keep])
    patterns = [compile_pattern(text) for text in replace]
    with reading.bar("Looking") as progress:
        values = snapshot_values(place, progress)
    if values is not None:
        return _write_snapshot(values, place, output, hidden, (patterns, hides_names))
    words = PrivateWords()
    with new_trace(output, place) as written:
        with reading.bar("Looking") as progress:
            read_parts(place, words, progress)
        hiding = Redactor(written, hidden, words, replace=patterns, hides_names=hides_names)
        with reading.bar("Redacting") as progress:
            found = read_parts(place, hiding, progress)
    rows = rewrite.mended(found.faults)
    return {
        "output": str(output),
        "events": found.events,
        "hidden": dict(sorted(hidden.counts.items())),
        "mended": [{**row, "example": None} for row in rows],
    }


def _write_snapshot(
    values: Any,
    place: str,
    output: Path,
    hidden: "Replacements",
    also: "tuple[list[Pattern], bool]",
) -> dict[str, Any]:
    """Write a memory snapshot, and tell what was hidden."""
    from selftime.reports.trace_file import write_bytes
    from selftime.rewrite.hiding import Redactor
    from selftime.rewrite.snapshots import private_words, redact_snapshot

    patterns, hides_names = also
    words = private_words(values)
    hiding = Redactor(None, hidden, words, replace=patterns, hides_names=hides_names)
    write_bytes(output, place, redact_snapshot(values, hiding))
    entries = [one for one in values.get("device_traces") or () if isinstance(one, list)]
    return {
        "output": str(output),
        "events": sum(map(len, entries)),
        "hidden": dict(sorted(hidden.counts.items())),
        "mended": [],
    }


def _lines(told: dict[str, Any]) -> list[str]:
    from selftime.reports import rewrite
    from selftime.reports.plain import plain
    from selftime.units import count_text

    hidden = ", ".join(f"{count_text(n)} x {kind}" for kind, n in told["hidden"].items())
    lines = [
        f"{told['output']}: {count_text(told['events'])} events",
        f"  hidden: {hidden or 'nothing was found'}",
        "  look through it before you send it: names that look like any others are kept",
    ]
    return [plain(line) for line in [*lines, *rewrite.mended_lines(told["mended"])]]
