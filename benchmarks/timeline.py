"""How long a tile of the timeline takes, from the whole trace down to microseconds.

    python benchmarks/timeline.py [--kinds cpu] [--sizes 1000]
    python benchmarks/timeline.py --trace TRACE.json[.gz]

Asks for windows of random length and place, lengths spread evenly over the orders of magnitude. A
second row tells of the same windows with a random slice selected, whose flows are told, too.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from sheets import Column, Table, add_format, show, table
from traces import KINDS, add_options, trace

import selftime

SHORTEST_NS: Final = 2_000
"""Windows are no shorter: a kernel fills such a one."""
COLUMNS: Final = (
    Column("tile", "tile"),
    Column("p50_ms", "median", "ms"),
    Column("p95_ms", "95th percentile", "ms"),
    Column("max_ms", "longest", "ms"),
    Column("rows", "most rows", "count"),
    Column("first_s", "first call, with the index", "s"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser)
    add_format(parser)
    parser.add_argument("--trace", type=Path, help="measure this trace as it is")
    parser.add_argument("--pixels", type=int, default=1000, help="of a tile (default: 1000)")
    parser.add_argument("--tiles", type=int, default=300, help="how many (default: 300)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("SELFTIME_CACHE", folder)
        if options.trace:
            named = [(options.trace, "own", options.trace.name)]
        else:
            named = [
                (trace(kind, size), f"{kind}-{size}", f"{size:,} MB: {KINDS[kind]}")
                for size in options.sizes
                for kind in options.kinds
            ]
        show([measured(*one, options.pixels, options.tiles) for one in named], options.format)


def measured(path: Path, key: str, title: str, pixels: int, count: int) -> Table:
    opened = selftime.load(path)
    assert isinstance(opened, selftime.Trace)  # noqa: S101 - a file is one trace
    begin = time.perf_counter()
    listed = opened.view("timeline", what="tracks")
    opened.view("timeline", selected=0, end=1)
    first = time.perf_counter() - begin
    found: list[dict[str, Any]] = []
    for name, flows in (("window", False), ("with flows", True)):
        spent, rows = tiles(opened, pixels, count, flows=flows)
        p50, p95, most = (float(np.percentile(spent, share)) for share in (50, 95, 100))
        found.append(
            {"tile": name, "p50_ms": p50, "p95_ms": p95, "max_ms": most, "rows": max(rows)}
        )
    found[0]["first_s"] = first
    about = {
        "bytes": path.stat().st_size,
        "slices": opened.slices.height,
        "lanes": int(listed["rows"].sum()),
        "tiles": count,
    }
    return table("timeline", key, f"Tiles of the timeline, {title}", COLUMNS, found, about)


def tiles(
    trace: selftime.Trace, pixels: int, count: int, *, flows: bool
) -> tuple[list[float], list[int]]:
    """Milliseconds and rows of random tiles, the whole trace the first."""
    ends = trace.slices.select(pl.col("start") + pl.col("duration").fill_null(0))
    last = int(ends.max().item())
    random = np.random.default_rng(0)
    spent, rows = [], []
    for number in range(count):
        length = int(np.exp(random.uniform(np.log(SHORTEST_NS), np.log(last)))) if number else last
        start = int(random.integers(0, last - length + 1))
        selected = int(random.integers(0, trace.slices.height)) if flows else -1
        begin = time.perf_counter()
        tile = trace.view(
            "timeline", start=start, end=start + length, pixels=pixels, selected=selected
        )
        spent.append(1e3 * (time.perf_counter() - begin))
        rows.append(tile.height)
    return spent, rows


if __name__ == "__main__":
    main()
