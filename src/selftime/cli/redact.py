"""`selftime redact`: writes a copy of a trace without private texts, such as file names."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.repair import SummaryFormat

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.names.private_data import Pattern
    from selftime.rewrite.private_data_removal import PrivateTextReplacements

_MAX_NAMES_SHOWN: Final = 12
"""Largest number of kept names of one kind that the summary shows."""
_MAX_NAME_WIDTH: Final = 40


def add_command(app: typer.Typer) -> None:
    app.command(
        "redact",
        short_help="Write a trace without folders, hosts, users and commands.",
        epilog="Example: selftime redact trace.json.gz -o shared.json.gz --replace 'acme\\w*'",
    )(redact)


def redact(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder of them.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The new trace; .gz compresses it."),
    ],
    hidden_patterns: Annotated[
        list[str] | None,
        typer.Option("--replace", metavar="REGEX", help="Also hide text that matches; repeatable."),
    ] = None,
    kept_patterns: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="REGEX", help="Keep texts that contain a match; repeatable."
        ),
    ] = None,
    hides_names: Annotated[
        bool,
        typer.Option(
            "--names", help="Also hide all names that you gave; list those that are kept."
        ),
    ] = False,
    trace_name: Annotated[
        str | None,
        typer.Option("--trace", metavar="NAME", help="The trace with this text in its name."),
    ] = None,
    summary_format: Annotated[
        SummaryFormat, typer.Option("--format", help="Format of the summary.")
    ] = SummaryFormat.text,
) -> None:
    """Write a copy of a trace with private texts replaced; times and structure stay the same.

    Within this file, equal texts get equal placeholders. Check the result before you send it:
    private names that look like ordinary words are only found with `--replace`.
    """
    trace_file = trace_reading.only_trace_file(path, name_part=trace_name)
    summary = _write_redacted_trace(
        trace_file, output, hidden_patterns or [], kept_patterns or [], hides_names=hides_names
    )
    if summary_format is SummaryFormat.json:
        from selftime.reports import rewrite

        answer = rewrite.as_json("redact", **summary)
    else:
        answer = "\n".join(_redaction_summary_lines(summary)) + "\n"
    output_writing.write_output(answer, to_stderr=output_writing.is_stdout(output))


def _write_redacted_trace(
    trace_file: str,
    output: Path,
    hidden_patterns: list[str],
    kept_patterns: list[str],
    *,
    hides_names: bool,
) -> dict[str, Any]:
    """Writes a trace with private texts replaced by placeholders; returns a summary."""
    from selftime.ingest.snapshots.plain_pickles import read_snapshot_values
    from selftime.ingest.text.trace_text_stream import stream_trace_text
    from selftime.names import compile_pattern
    from selftime.reports import rewrite
    from selftime.reports.trace_file import open_trace_writer
    from selftime.rewrite.private_data_removal import (
        PrivateTextReplacements,
        PrivateWordCollector,
        Redactor,
    )
    from selftime.rewrite.user_names import UserNames

    hidden = PrivateTextReplacements([compile_pattern(text) for text in kept_patterns])
    patterns = [compile_pattern(text) for text in hidden_patterns]
    with trace_reading.progress_bar("Looking") as progress:
        values = read_snapshot_values(trace_file, progress)
    if values is not None:
        return _write_redacted_snapshot(
            values, trace_file, output, hidden, patterns, hides_names=hides_names
        )
    words = PrivateWordCollector(user_names=UserNames() if hides_names else None)
    with open_trace_writer(output, trace_file) as written:
        with trace_reading.progress_bar("Looking") as progress:
            stream_trace_text(trace_file, words, progress)
        hiding = Redactor(written, hidden, words, replace=patterns, hides_names=hides_names)
        with trace_reading.progress_bar("Redacting") as progress:
            found = stream_trace_text(trace_file, hiding, progress)
    rows = rewrite.fault_rows(found.faults)
    kept = words.user_names.kept if words.user_names else {}
    return {
        "output": str(output),
        "events": found.event_count,
        "hidden": dict(sorted(hidden.counts.items())),
        "kept": {kind: hiding.redacted_names(kept[kind]) for kind in sorted(kept)},
        "mended": [{**row, "example": None} for row in rows],
    }


def _write_redacted_snapshot(
    snapshot: Any,
    snapshot_file: str,
    output: Path,
    replacements: "PrivateTextReplacements",
    hidden_patterns: "list[Pattern]",
    *,
    hides_names: bool,
) -> dict[str, Any]:
    """Writes a memory snapshot with private texts replaced, and returns the summary."""
    from selftime.reports.trace_file import write_bytes
    from selftime.rewrite.private_data_removal import Redactor
    from selftime.rewrite.snapshot_redaction import redact_snapshot, users_and_hosts_in_snapshot

    words = users_and_hosts_in_snapshot(snapshot)
    hiding = Redactor(None, replacements, words, replace=hidden_patterns, hides_names=hides_names)
    write_bytes(output, snapshot_file, redact_snapshot(snapshot, hiding))
    entries = [one for one in snapshot.get("device_traces") or () if isinstance(one, list)]
    return {
        "output": str(output),
        "events": sum(map(len, entries)),
        "hidden": dict(sorted(replacements.counts.items())),
        "kept": {},
        "mended": [],
    }


def _redaction_summary_lines(summary: dict[str, Any]) -> list[str]:
    from selftime.reports import rewrite
    from selftime.reports.plain import plain
    from selftime.units import count_text

    hidden = ", ".join(f"{count_text(n)} x {kind}" for kind, n in summary["hidden"].items())
    lines = [
        f"{summary['output']}: {count_text(summary['events'])} events",
        f"  hidden: {hidden or 'nothing'}",
        *_kept_lines(summary["kept"]),
        "  check it before you send it: private names that look like ordinary words are kept",
    ]
    return [plain(line) for line in [*lines, *rewrite.fault_lines(summary["mended"])]]


def _kept_lines(kept: dict[str, list[str]]) -> Iterator[str]:
    """Yields a line for each kind of names that are kept, with the first of them."""
    from selftime.reports.plain import cut_text_middle
    from selftime.units import count_text

    for kind, texts in kept.items():
        shown = [cut_text_middle(text, _MAX_NAME_WIDTH) for text in texts[:_MAX_NAMES_SHOWN]]
        more = len(texts) - len(shown)
        rest = f" and {count_text(more)} more, which `--format json` lists" if more else ""
        yield f"  kept, {kind}: {', '.join(shown)}{rest}"
