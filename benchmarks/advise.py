"""How long `selftime advise` takes on a trace: from cold, and from the cache.

    python benchmarks/advise.py [--kinds training] [--sizes 1000]

Whole processes, from start to exit, in turn. Cold: nothing of the trace is in the cache. Kept: the
command has been given the trace before.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from measure import Measured, measure
from open_trace import lay
from sheets import Column, Table, table
from traces import KINDS, trace
from whole_commands import measure_traces, summary

COLUMNS: Final = (
    Column("trace", "trace"),
    Column("megabytes", "JSON, MB", "count"),
    Column("from", "from"),
    Column("wall_s", "time", "s"),
    Column("cpu_s", "CPU", "s"),
    Column("memory", "peak memory", "bytes"),
    Column("failure", "fails"),
)


def advised(kind: str, size: int, options: argparse.Namespace) -> Table:
    file = trace(kind, size)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "selftime",
        "advise",
        file.absolute(),
        "--format",
        "json",
    ]
    samples: dict[str, list[Measured]] = {"cold": [], "kept": []}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "cache")
        environment = {"SELFTIME_CACHE": str(cache)}
        warm = [*command[:4], trace(kind, 1).absolute()]
        measure(warm, limit_s=options.limit, environment=environment)
        for _ in range(options.n):
            for runs in samples.values():  # the cold one keeps what the other finds
                lay(file, "warm")
                runs.append(measure(command, limit_s=options.limit, environment=environment))
            shutil.rmtree(cache, ignore_errors=True)
    rows = [
        {"trace": kind, "megabytes": size, "from": name, **summary(runs)}
        for name, runs in samples.items()
    ]
    title = f"`selftime advise`, {size:,} MB: {KINDS[kind]}"
    about = {"kind": kind, "megabytes": size, "rounds": options.n}
    return table("advise", f"{kind}-{size}", title, COLUMNS, rows, about)


if __name__ == "__main__":
    measure_traces(__doc__, advised)
