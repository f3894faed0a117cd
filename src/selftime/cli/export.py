"""`selftime export`: a trace in the format of another program."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from selftime.cli import reading, writing
from selftime.cli.options import TraceName
from selftime.cli.repair import Format
from selftime.errors import UnreadableTrace, UsageError
from selftime.output_file import make_folder, told_in_a_sentence

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.reports.exports import Asked, Export, Told
    from selftime.trace import Job, Trace

_ENDINGS: Final = (".gz", ".zst", ".json", ".pickle", ".trace", ".pt")
"""What is taken off a trace's name before a format's own ending is added."""
_FEW: Final = 4
"""Files of a folder that are named."""


class Weight(str, Enum):
    """Whose time stacks tell."""

    host = "host"
    device = "device"


def join(app: typer.Typer) -> None:
    app.command(
        "export",
        short_help="Write a trace for Perfetto, speedscope, flame graphs, Parquet or CSV.",
        epilog="Example: selftime export trace.json.gz --to perfetto -o trace.pftrace",
    )(export)


def export(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A trace, a folder of them, or an address.")
    ],
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT", help="chrome, perfetto, speedscope, folded, parquet or csv."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The new file, .gz packs it; the folder of tables or of several traces.",
        ),
    ] = None,
    weight: Annotated[
        Weight | None, typer.Option(help="Of folded stacks: the host's time or the device's.")
    ] = None,
    view: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of parquet and csv: this view; repeatable."),
    ] = None,
    trace: TraceName = None,
    form: Annotated[
        Format, typer.Option("--format", help="How to say what was written.")
    ] = Format.text,
) -> None:
    """Write a trace in the format of another program, and say what that cannot hold.

    Of a folder every trace is written to a file of its own; for Perfetto all of them to one, side
    by side on one clock. docs/export.md says what each format holds and which programs open it.
    """
    from selftime.reports.exports import asked_of, find

    words = {"weight": weight and weight.value, "views": tuple(view or ())}
    asked = asked_of(to, **{name: word for name, word in words.items() if word})
    told = list(_write(path, find(to), output, asked, trace))
    if form is Format.json:
        from selftime.reports import rewrite

        said = rewrite.as_json("export", to=to, outputs=told)
    else:
        said = "\n".join(line for one in told for line in _lines(one)) + "\n"
    writing.write(said, err=output is not None and writing.is_stdout(output))


def _write(
    path: str, chosen: "Export", output: Path | None, asked: "Asked", choice: str | None
) -> Iterator[dict[str, Any]]:
    """Write every trace that is meant, and tell of each file."""
    from selftime.ingest.paths import trace_files
    from selftime.reports.exports import write_job

    found = trace_files(path)
    if found.is_collection and chosen.name != "perfetto":
        yield from _write_each(path, chosen, output, asked, choice)
        return
    read = _read(path, choice)
    place = output or _unused(_stem(path) + (chosen.ending or f"-{chosen.name}"))
    if isinstance(read, dict):
        yield _told(path, place, _watched(chosen.write, next(iter(read.values())), place, asked))
        reading.tell_doubts(read)
    elif chosen.name == "perfetto":
        yield _told(path, place, _watched(write_job, read, place, asked))
        reading.tell_doubts({reading.name_in(key, path): one for key, one in read.traces.items()})
    else:
        yield from _write_each(path, chosen, output, asked, choice)


def _read(path: str, choice: str | None) -> "dict[str, Trace] | Job":
    """The only trace at a path, by its name, or the job that they are."""
    from selftime.ingest.load import load
    from selftime.trace import Trace

    with reading.bar("Reading") as progress:
        found = load(path, progress=progress)
    if isinstance(found, Trace):
        return {path: found}
    reading.tell_job(found.refused, found.notes)
    named = {key: reading.name_in(key, path) for key in found.traces}
    chosen = {key: found.traces[key] for key, name in named.items() if (choice or "") in name}
    if not chosen:
        raise _none_of(path, choice)
    if len(chosen) == 1:
        return {named[key]: one for key, one in chosen.items()}
    return replace(found, traces=chosen)


def _none_of(path: str, choice: str | None) -> Exception:
    if choice is None:
        return UnreadableTrace(f"`{path}` holds no trace that can be read; record one first")
    return UsageError(f"no trace in `{path}` has `{choice}` in its name; see `ls {path}`")


def _write_each(
    path: str, chosen: "Export", output: Path | None, asked: "Asked", choice: str | None
) -> Iterator[dict[str, Any]]:
    """Write the traces of a folder one after the other, each to a file in another folder.

    They are read one by one: however many there are, one is held.
    """
    folder = output
    for name, trace in _each(path, choice):
        if folder is None:
            folder = _unused(f"{_stem(path)}-{chosen.name}")
        with told_in_a_sentence(folder):
            if folder.exists() and not folder.is_dir():
                raise UsageError(
                    f"`{folder}` is a file, and there are several traces; name a folder with `-o`"
                )
            make_folder(folder)
        place = folder / (_stem(name.replace("/", "-")) + chosen.ending)
        yield _told(name, place, _watched(chosen.write, trace, place, asked))
        reading.tell_doubts({name: trace})
    if folder is None:
        raise _none_of(path, choice)


def _each(path: str, choice: str | None) -> "Iterator[tuple[str, Trace]]":
    from selftime.ingest.load import read_file_or_reason
    from selftime.ingest.paths import trace_files

    found = trace_files(path)
    refused = dict(found.refused)
    for place in found.files:
        with reading.bar("Reading") as progress:
            read = read_file_or_reason(place, progress=progress)
        if isinstance(read, str):
            refused[place] = read
            continue
        for key, trace in read.items():
            name = reading.name_in(key, path)
            if (choice or "") in name:
                yield name, trace
    reading.tell_job(refused, ())


def _watched(write: Any, subject: "Trace | Job", place: Path, asked: "Asked") -> "Told":
    """What writing tells, with a bar while it goes on."""
    with reading.bar("Exporting", counts_bytes=False) as progress:
        watched = asked if progress is None else replace(asked, progress=progress)
        told: Told = write(subject, place, watched)
    return told


def _stem(path: str) -> str:
    """A trace's or a folder's own name."""
    name = Path(path.rstrip("/")).name
    while (ending := Path(name).suffix) in _ENDINGS and ending:
        name = name.removesuffix(ending)
    return name or "trace"


def _unused(name: str) -> Path:
    """A place in this folder that nobody named: nothing may be there yet."""
    if Path(name).exists():
        raise UsageError(f"`{name}` is there already; name another place, or this one, with `-o`")
    return Path(name)


def _told(path: str, place: Path, told: "Told") -> dict[str, Any]:
    return {
        "path": path,
        "output": str(place),
        "files": told.files,
        "bytes": told.size,
        "written": told.written,
        "left_out": told.left_out,
    }


def _lines(told: dict[str, Any]) -> Iterator[str]:
    from selftime.reports.plain import plain
    from selftime.units import bytes_text

    if told["files"]:
        tables = len(told["written"])
        rows = {name: rows for name, rows in told["written"].items() if rows}
        most = sorted(rows, key=lambda name: -rows[name])[:_FEW]
        what = f"{tables} table{'' if tables == 1 else 's'}; {_counted({n: rows[n] for n in most})}"
    else:
        what = _counted(told["written"])
    yield plain(f"{told['output']}: {bytes_text(told['bytes'])}; {what}")
    if told["left_out"]:
        yield plain(f"  left out: {_counted(told['left_out'])}")


def _counted(counts: dict[str, int]) -> str:
    from selftime.units import count_text, time_text

    told = [
        time_text(count) if what == "ns" else f"{count_text(count)} {what}"
        for what, count in counts.items()
        if count
    ]
    return ", ".join(told) or "nothing"
