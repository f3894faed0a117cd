"""How long `selftime report` takes on a trace that is in the cache, and how large its page is.

    python benchmarks/report.py [--kinds training] [--sizes 1000]

Whole processes, from start to exit.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from measure import measure
from sheets import Column, Table, table
from traces import KINDS, trace
from whole_commands import measure_traces, summary

COLUMNS = (
    Column("trace", "trace"),
    Column("megabytes", "JSON, MB", "count"),
    Column("wall_s", "time", "s"),
    Column("cpu_s", "CPU", "s"),
    Column("memory", "peak memory", "bytes"),
    Column("page", "page", "bytes"),
    Column("failure", "fails"),
)


def reported(kind: str, size: int, options: argparse.Namespace) -> Table:
    file = trace(kind, size).absolute()
    ours: list[str | Path] = [sys.executable, "-m", "selftime"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {"SELFTIME_CACHE": str(Path(folder, "cache"))}
        page = Path(folder, "report.html")
        measure([*ours, "view", "steps", file], environment=environment)  # which fills the cache
        command = [*ours, "report", file, "-o", page]
        runs = [
            measure(command, limit_s=options.limit, environment=environment)
            for _ in range(options.n)
        ]
        found = {"page": page.stat().st_size if page.exists() else None, **summary(runs)}
    title = f"`selftime report`, {size:,} MB: {KINDS[kind]}"
    about = {"kind": kind, "megabytes": size, "rounds": options.n}
    row = {"trace": kind, "megabytes": size, **found}
    return table("report", f"{kind}-{size}", title, COLUMNS, [row], about)


if __name__ == "__main__":
    measure_traces(__doc__, reported)
