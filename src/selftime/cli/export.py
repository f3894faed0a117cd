"""`selftime export`: writes a trace in the file format of another program."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.error_reporting import print_notice
from selftime.cli.repair import SummaryFormat
from selftime.cli.shared_options import TraceName
from selftime.errors import UnreadableTrace, UsageError
from selftime.output_file import make_folder, report_output_errors

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.reports.export import Export, ExportOptions, ExportResult
    from selftime.trace import Job, Trace

_FORMATS_HELP: Final = "chrome, perfetto, speedscope, folded, parquet, csv or xlsx."
_SUFFIXES_REMOVED_FROM_TRACE_NAME: Final = (".gz", ".zst", ".json", ".pickle", ".trace", ".pt")
"""Suffixes that are removed from a trace's name before the format's suffix is added."""
_SUFFIXES_OF_FILES: Final = frozenset(
    {".json", ".gz", ".zst", ".pftrace", ".folded", ".txt", ".parquet", ".csv", ".xlsx"}
)
"""Endings of names that are taken for files, where a folder of exports is to be named."""
_MAX_TABLES_NAMED_IN_SUMMARY: Final = 4
"""Largest number of tables that the summary names after writing a folder of tables."""


class StackWeight(str, Enum):
    """Kinds of time that the folded stacks of a flame graph can contain."""

    host = "host"
    device = "device"


_StackWeightOption: TypeAlias = Annotated[
    StackWeight | None,
    typer.Option(help="Time by which folded stacks are weighted: host or device."),
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "export",
        short_help="Write a trace for Perfetto, speedscope, flame graphs, Parquet, CSV or Excel.",
        epilog="Example: selftime export trace.json.gz --to perfetto -o trace.pftrace",
    )(export)


def export(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A trace, a folder of them, or a URL.")
    ],
    target_format: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help=_FORMATS_HELP),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The new file, .gz compresses it; a folder for tables or several traces.",
        ),
    ] = None,
    weight: _StackWeightOption = None,
    views: Annotated[
        list[str] | None,
        typer.Option(
            "--view", metavar="NAME", help="For parquet, csv, xlsx: write this view; repeatable."
        ),
    ] = None,
    trace_name: TraceName = None,
    summary_format: Annotated[
        SummaryFormat, typer.Option("--format", help="Format of the summary.")
    ] = SummaryFormat.text,
) -> None:
    """Write a trace in the format of another program, and list what that format cannot contain.

    The traces of a folder are written to one file each; for Perfetto and speedscope to one file
    together, on a common clock. docs/export.md says what each format holds, and what opens it.
    """
    from selftime.reports.export import export_options, find_format

    words = {"weight": weight and weight.value, "views": tuple(views or ())}
    options = export_options(target_format, **{name: word for name, word in words.items() if word})
    summaries = list(_export_traces(path, find_format(target_format), output, options, trace_name))
    if summary_format is SummaryFormat.json:
        from selftime.reports import rewrite

        answer = rewrite.as_json("export", to=target_format, outputs=summaries)
    else:
        answer = "\n".join(line for one in summaries for line in _export_summary_lines(one)) + "\n"
    is_stdout = output is not None and output_writing.is_stdout(output)
    output_writing.write_output(answer, to_stderr=is_stdout)


def _export_traces(
    path: str,
    target: "Export",
    output: Path | None,
    options: "ExportOptions",
    name_part: str | None,
) -> Iterator[dict[str, Any]]:
    """Exports the traces with `name_part` in their names; yields a summary of each file."""
    from selftime.ingest.trace_paths import trace_files

    found = trace_files(path)
    if found.is_collection and target.write_job is None:
        chosen = _files_with_name_part(path, name_part)
        if output is None or not _is_file_name(output):
            yield from _export_file_per_trace(path, target, output, options, name_part)
            return
        if len(chosen) > 1:
            raise UsageError(
                f"`{output}` names one file, and `{target.name}` writes each of the {len(chosen)} "
                f"traces in `{path}` to a file of its own; name a folder with `-o`, or choose a "
                "trace with `--trace`"
            )
        path, name_part = (chosen[0], None) if chosen else (path, name_part)
    read = _read_trace_or_job(path, name_part)
    file = output or _default_output_path(
        _name_without_suffixes(path) + (target.suffix or f"-{target.name}")
    )
    if isinstance(read, dict):
        yield _export_summary(
            path,
            file,
            _export_with_progress_bar(target.write, next(iter(read.values())), file, options),
        )
        trace_reading.report_damaged_traces(read)
    elif target.write_job is not None:
        written = _export_with_progress_bar(target.write_job, read, file, options)
        yield _export_summary(path, file, written)
        trace_reading.report_damaged_traces(
            {trace_reading.relative_trace_name(key, path): one for key, one in read.traces.items()}
        )
    else:
        yield from _export_file_per_trace(path, target, output, options, name_part)


def _read_trace_or_job(path: str, name_part: str | None) -> "dict[str, Trace] | Job":
    """Returns {name: trace} if there is a single trace at a path, else a `Job` of all traces."""
    from selftime.ingest.load import load
    from selftime.trace import Trace

    with trace_reading.progress_bar("Reading") as progress:
        found = load(path, progress=progress)
    if isinstance(found, Trace):
        return {path: found}
    trace_reading.report_job_problems(found.refused, found.notes)
    named = {key: trace_reading.relative_trace_name(key, path) for key in found.traces}
    chosen = {key: found.traces[key] for key, name in named.items() if (name_part or "") in name}
    if not chosen:
        raise _no_trace_error(path, name_part)
    if len(chosen) == 1:
        return {named[key]: one for key, one in chosen.items()}
    return replace(found, traces=chosen)


def _no_trace_error(path: str, name_part: str | None) -> Exception:
    if name_part is None:
        return UnreadableTrace(f"`{path}` holds no trace that can be read; record one first")
    return UsageError(f"no trace in `{path}` has `{name_part}` in its name; see `ls {path}`")


def _export_file_per_trace(
    path: str,
    target: "Export",
    output: Path | None,
    options: "ExportOptions",
    name_part: str | None,
) -> Iterator[dict[str, Any]]:
    """Writes each trace of a folder to its own file in another folder.

    Only one trace is in memory at a time.
    """
    folder = output
    is_told = False
    for name, trace in _read_traces_one_by_one(path, name_part):
        if folder is None:
            folder = _default_output_path(f"{_name_without_suffixes(path)}-{target.name}")
        with report_output_errors(folder):
            if folder.exists() and not folder.is_dir():
                raise UsageError(
                    f"`{folder}` is a file, and there are several traces; name a folder with `-o`"
                )
            make_folder(folder)
        if not is_told:
            _report_file_per_trace(path, folder, name_part)
            is_told = True
        file = folder / (_name_without_suffixes(name.replace("/", "-")) + target.suffix)
        yield _export_summary(
            name, file, _export_with_progress_bar(target.write, trace, file, options)
        )
        trace_reading.report_damaged_traces({name: trace})
    if folder is None:
        raise _no_trace_error(path, name_part)


def _files_with_name_part(path: str, name_part: str | None) -> list[str]:
    """Returns the files of a folder's traces with `name_part` in their names below it."""
    from selftime.ingest.trace_paths import trace_files

    return [
        file
        for file in trace_files(path).files
        if (name_part or "") in trace_reading.relative_trace_name(file, path)
    ]


def _is_file_name(output: Path) -> bool:
    """Returns whether a path that need not exist is named as a file of some format."""
    return not output.is_dir() and output.suffix.lower() in _SUFFIXES_OF_FILES


def _report_file_per_trace(path: str, folder: Path, name_part: str | None) -> None:
    """Prints that each of several recordings gets its own file in a folder."""
    count = len(_files_with_name_part(path, name_part))
    if count > 1:
        print_notice(
            f"selftime: `{path}` holds {count} recordings; each is written below `{folder}/`"
        )


def _read_traces_one_by_one(path: str, name_part: str | None) -> "Iterator[tuple[str, Trace]]":
    from selftime.ingest.load import read_file_or_reason
    from selftime.ingest.trace_paths import trace_files

    found = trace_files(path)
    refused = dict(found.refused)
    for place in found.files:
        with trace_reading.progress_bar("Reading") as progress:
            read = read_file_or_reason(place, progress=progress)
        if isinstance(read, str):
            refused[place] = read
            continue
        for key, trace in read.items():
            name = trace_reading.relative_trace_name(key, path)
            if (name_part or "") in name:
                yield name, trace
    trace_reading.report_job_problems(refused, ())


def _export_with_progress_bar(
    write: Any, trace_or_job: "Trace | Job", output: Path, options: "ExportOptions"
) -> "ExportResult":
    """Writes the file with a progress bar on stderr; returns how many items were written."""
    with trace_reading.progress_bar("Exporting", counts_bytes=False) as progress:
        with_progress = options if progress is None else replace(options, progress=progress)
        result: ExportResult = write(trace_or_job, output, with_progress)
    return result


def _name_without_suffixes(path: str) -> str:
    """Returns the name of a trace's file or folder without suffixes such as `.json.gz`."""
    name = Path(path.rstrip("/")).name
    while (ending := Path(name).suffix) in _SUFFIXES_REMOVED_FROM_TRACE_NAME and ending:
        name = name.removesuffix(ending)
    return name or "trace"


def _default_output_path(name: str) -> Path:
    """Returns the path of `name` in the working folder; raises a UsageError if it exists.

    Raises:
        UsageError: A file or folder of that name exists already.
    """
    if Path(name).exists():
        raise UsageError(f"`{name}` exists already; name another path, or this one, with `-o`")
    return Path(name)


def _export_summary(trace_path: str, output: Path, result: "ExportResult") -> dict[str, Any]:
    return {
        "path": trace_path,
        "output": str(output),
        "files": result.files,
        "bytes": result.size,
        "written": result.written,
        "left_out": result.left_out,
    }


def _export_summary_lines(summary: dict[str, Any]) -> Iterator[str]:
    from selftime.reports.plain import plain
    from selftime.units import bytes_text

    if summary["files"]:
        tables = len(summary["written"])
        rows = {name: rows for name, rows in summary["written"].items() if rows}
        most = sorted(rows, key=lambda name: -rows[name])[:_MAX_TABLES_NAMED_IN_SUMMARY]
        largest = _written_counts_text({name: rows[name] for name in most})
        what = f"{tables} table{'' if tables == 1 else 's'}; {largest}"
    else:
        what = _written_counts_text(summary["written"])
    yield plain(f"{summary['output']}: {bytes_text(summary['bytes'])}; {what}")
    if summary["left_out"]:
        yield plain(f"  left out: {_written_counts_text(summary['left_out'])}")


def _written_counts_text(counts: dict[str, int]) -> str:
    from selftime.units import count_text, time_text

    told = [
        time_text(count) if what == "ns" else f"{count_text(count)} {what}"
        for what, count in counts.items()
        if count
    ]
    return ", ".join(told) or "nothing"
