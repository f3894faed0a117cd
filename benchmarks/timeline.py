"""How long a tile of the timeline takes, from the whole trace down to microseconds.

Scales a trace to the size asked for, or takes one that is large already, loads it, and asks for
windows of random length and place, lengths spread evenly over the orders of magnitude. A second
row tells of the same windows with a random slice selected, whose flows are told, too.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from open_trace import record
from scale import scale

import selftime

SHORTEST_NS: Final = 2_000
"""Windows are no shorter: a kernel fills such a one."""
GOAL_MS: Final = 50
"""A tile is to be there within this, in 95 of 100 cases, on a trace of 1 GB."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100, help="of JSON (default: 100)")
    parser.add_argument("--trace", type=Path, help="scale this trace instead of one of our own")
    parser.add_argument("--large", type=Path, help="measure this trace as it is")
    parser.add_argument("--pixels", type=int, default=1000, help="of a tile (default: 1000)")
    parser.add_argument("-n", type=int, default=300, help="tiles (default: 300)")
    options = parser.parse_args()
    if options.large:
        measure(options.large, options.pixels, options.n)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SELFTIME_CACHE"] = str(Path(folder, "cache"))
        large = Path(folder, "large.json")
        scale(options.trace or record(Path(folder, "small.json")), large, options.megabytes * 10**6)
        measure(large, options.pixels, options.n)


def measure(path: Path, pixels: int, count: int) -> None:
    trace = selftime.load(path)
    assert isinstance(trace, selftime.Trace)  # noqa: S101 - a file is one trace
    begin = time.perf_counter()
    listed = trace.view("timeline", what="tracks")
    trace.view("timeline", selected=0, end=1)
    print(f"{path.name}: {trace.slices.height:,} slices, {listed['rows'].sum()} lanes")
    print(f"first call, with the index: {time.perf_counter() - begin:.2f} s\n")
    print(f"{'tile':<16}{'p50 ms':>10}{'p95 ms':>10}{'max ms':>10}{'most rows':>12}")
    for name, flows in (("window", False), ("with flows", True)):
        spent, rows = tiles(trace, pixels, count, flows=flows)
        figures = "".join(f"{np.percentile(spent, share):>10.1f}" for share in (50, 95, 100))
        print(f"{name:<16}{figures}{max(rows):>12,}")
    print(f"\nThe goal is {GOAL_MS} ms at p95 on a trace of 1 GB.")


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
