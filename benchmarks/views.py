"""How long every view takes on a trace that is in the cache, the first time and again.

    python benchmarks/views.py [--kinds training] [--sizes 1000]
    python benchmarks/views.py --trace TRACE.json[.gz]

Each view in a process of its own, so that none finds what another has left with the trace; asked
without options, for the whole trace. The time to start and to open is told for itself.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from measure import measure
from sheets import Column, Table, add_format, show, table
from traces import KINDS, add_options, trace

COLUMNS: Final = (
    Column("view", "view"),
    Column("rows", "rows", "count"),
    Column("first_s", "first", "s"),
    Column("again_s", "again", "s"),
    Column("open_s", "opening", "s"),
    Column("memory", "peak memory", "bytes"),
    Column("failure", "fails"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser)
    add_format(parser)
    parser.add_argument("--trace", type=Path, help="measure this trace as it is")
    parser.add_argument("--views", nargs="+", help="only these")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.trace, options.one)
        return
    if options.trace:
        show([viewed(options.trace, options.trace.name, "own", options)], options.format)
        return
    tables = [
        viewed(trace(kind, size), f"{size:,} MB: {KINDS[kind]}", f"{kind}-{size}", options)
        for size in options.sizes
        for kind in options.kinds
    ]
    show(tables, options.format)


def one(path: Path, name: str) -> None:
    """The measured process: a view twice, or the names of all views."""
    import selftime  # noqa: PLC0415 - who measures must stay small
    from selftime.views import VIEWS  # noqa: PLC0415 - likewise

    begin = perf_counter()
    found = selftime.load(path)
    told: dict[str, Any] = {"open_s": perf_counter() - begin}
    if not isinstance(found, selftime.Trace):
        sys.exit(f"`{path}` is a folder; name a trace")
    if name == "all":
        told["views"] = list(VIEWS)
    else:
        for key in ("first_s", "again_s"):
            begin = perf_counter()
            told["rows"] = found.view(name).height
            told[key] = perf_counter() - begin
    print(json.dumps(told))


def viewed(path: Path, title: str, key: str, options: argparse.Namespace) -> Table:
    ours: list[str | Path] = [sys.executable, Path(__file__), "--trace", path.absolute(), "--one"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {"SELFTIME_CACHE": os.environ.get("SELFTIME_CACHE", folder)}
        begun = measure([*ours, "all"], environment=environment)
        if begun.failure:
            sys.exit(f"{path.name} does not open: {begun.failure}")
        for name in options.views or begun.told["views"]:
            run = measure([*ours, name], environment=environment)
            rows.append({"view": name, "memory": run.memory, "failure": run.failure, **run.told})
    return table("views", key, f"Views, {title}", COLUMNS, rows, {"bytes": path.stat().st_size})


if __name__ == "__main__":
    main()
