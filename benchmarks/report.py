"""How long `selftime report` takes on a trace that is in the cache, and how large its page is.

    python benchmarks/report.py [--kinds training] [--sizes 1000]

Whole processes, from start to exit.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from advise import summary
from measure import measure
from sheets import Column, Table, add_format, show, table
from traces import KINDS, add_options, trace

COLUMNS = (
    Column("trace", "trace"),
    Column("megabytes", "JSON, MB", "count"),
    Column("wall_s", "time", "s"),
    Column("cpu_s", "CPU", "s"),
    Column("memory", "peak memory", "bytes"),
    Column("page", "page", "bytes"),
    Column("failure", "fails"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser)
    add_format(parser)
    parser.add_argument("-n", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--limit", type=float, default=900, help="seconds of one run")
    options = parser.parse_args()
    tables = [reported(kind, size, options) for size in options.sizes for kind in options.kinds]
    show(tables, options.format)


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
    main()
