"""Whether opening costs the same for each megabyte, from the smallest trace to the largest.

    python benchmarks/sizes.py [--kinds cpu] [--sizes 10 100 1000 5000]

Each trace in a process of its own, in turn. The exponent of a row says how the time of the work
grew from the size before: 1 is linear, 2 quadratic. The time to start Python and to import is not
in it, the start of worker processes is.
"""

import argparse
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from measure import Measured
from medians import middle
from open_trace import OPENED, once, readers, rotated
from sheets import Column, Table, add_format, show, table
from traces import KINDS, add_options, trace
from whole_commands import add_rounds

COLUMNS: Final = (
    Column("megabytes", "JSON, MB", "count"),
    Column("events", "slices", "count"),
    Column("wall_s", "time", "s"),
    Column("load_s", "loading", "s"),
    Column("ms_per_mb", "loading, ms / MB", "ms/MB"),
    Column("exponent", "exponent", "ms/MB"),
    Column("memory", "peak memory", "bytes"),
    Column("x_size", "peak memory ÷ size", "x"),
    Column("failure", "fails"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser)
    add_format(parser)
    add_rounds(parser, rounds=5)
    parser.add_argument("--disk", choices=("warm", "cold"), default="warm")
    options = parser.parse_args()
    show([grown(kind, sorted(options.sizes), options) for kind in options.kinds], options.format)


def grown(kind: str, sizes: Sequence[int], options: argparse.Namespace) -> Table:
    reader = readers()[OPENED]
    files = {size: trace(kind, size) for size in sizes}
    samples: dict[int, list[Measured]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory() as folder:
        environment = {"SELFTIME_CACHE": str(Path(folder, "cache"))}
        once(reader, files[sizes[0]], environment, options)
        for turn in range(options.n):
            for name in rotated([str(size) for size in sizes], turn):
                size = int(name)
                samples[size].append(once(reader, files[size], environment, options))
    rows: list[dict[str, Any]] = []
    for size, runs in samples.items():
        rows.append(row(size, files[size].stat().st_size, runs, rows[-1] if rows else None))
    about = {"kind": kind, "disk": options.disk, "rounds": options.n}
    return table("sizes", kind, f"Each megabyte: {KINDS[kind]}", COLUMNS, rows, about)


def row(
    size: int, actual: int, runs: Sequence[Measured], before: dict[str, Any] | None
) -> dict[str, Any]:
    well = [run for run in runs if not run.failure]
    load = middle([run.told.get("load_s") for run in well])
    memory = middle([run.memory for run in well])
    found: dict[str, Any] = {
        "megabytes": size,
        "bytes": actual,
        "events": middle([run.told.get("events") for run in well]),
        "wall_s": middle([run.wall_s for run in well]),
        "load_s": load,
        "ms_per_mb": None if load is None else load * 1e3 / (actual / 1e6),
        "memory": memory,
        "x_size": None if memory is None else memory / actual,
        "failure": next((run.failure for run in runs if run.failure), None),
    }
    if before and before["load_s"] and load:
        grew = actual / before["bytes"]
        found["exponent"] = math.log(load / before["load_s"]) / math.log(grew)
    return found


if __name__ == "__main__":
    main()
