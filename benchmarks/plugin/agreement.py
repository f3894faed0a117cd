"""Where our figures equal those of the old TensorBoard plugin, and where they do not.

    python agreement.py --plugin PYTHON TRACE.json[.gz] ...

PYTHON is that of an environment with torch-tb-profiler 0.4.3; `make peers` makes one. Prints a
Markdown table for each trace: a row for each figure, how many of its values are equal, and the
largest difference. Durations are equal if they are so to the plugin's microsecond fractions.
"""

import argparse
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import selftime

US = 1_000
CLOSE_NS = 2
"""The plugin keeps us as binary fractions: sums of them are off by up to this."""
STEP = (
    "kernel",
    "memcpy",
    "memset",
    "communication",
    "runtime",
    "data_loading",
    "cpu",
    "other",
    "total",
)
OPERATOR = (
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
)
KERNEL = {"count": "count", "sum": "total", "mean": "mean", "max": "max", "min": "min"}
WEIGHTED = ("blocks_per_sm", "occupancy")


class Row(NamedTuple):
    """One figure: how many of its values are equal, of how many, and what differs most."""

    figure: str
    equal: int
    compared: int
    worst: str


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--plugin", type=Path, required=True, metavar="PYTHON")
    parser.add_argument("traces", type=Path, nargs="+")
    options = parser.parse_args()
    for path in options.traces:
        trace = selftime.load(path)
        if not isinstance(trace, selftime.Trace):
            parser.error(f"`{path}` is a folder; name a trace")
        print(f"\n{path.name}\n")
        print("| figure | equal | of | largest difference (plugin, selftime) |")
        print("|---|---|---|---|")
        for row in compared(told_by_plugin(options.plugin, path), trace):
            print(f"| {row.figure} | {row.equal} | {row.compared} | {row.worst} |")


def told_by_plugin(python: Path, path: Path) -> dict[str, Any]:
    script = Path(__file__).with_name("figures.py")
    done = subprocess.run(
        [str(python), str(script), str(path)], capture_output=True, text=True, check=True
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def compared(told: dict[str, Any], trace: selftime.Trace) -> Iterator[Row]:
    yield from steps(told["steps"], trace.view("steps"))
    operators = trace.view("operators").filter(pl.col("kind") == "operator")
    yield from rows(
        "operator", told["operators"], operators, {name: name for name in OPERATOR}, scale=US
    )
    kernels = trace.view("kernels").filter(pl.col("class") != "collective")
    yield from rows("kernel", told["kernels"], kernels, KERNEL, scale=US)
    yield from rows("kernel", told["kernels"], kernels, {n: n for n in WEIGHTED}, scale=1)


def steps(told: list[dict[str, Any]], ours: pl.DataFrame) -> Iterator[Row]:
    """Steps by their number; the plugin may have some twice, which are then not compared."""
    found = {str(row["step"]): row for row in ours.iter_rows(named=True)}
    seen = [row["step"] for row in told]
    once = [row for row in told if seen.count(row["step"]) == 1 and row["step"] in found]
    numbers = f"{', '.join(seen)}; {', '.join(found)}"
    yield Row("steps found", len(once), len(found), "" if len(once) == len(found) else numbers)
    for name in STEP:
        pairs = [(row["step"], row[name] * US, found[row["step"]][_step(name)]) for row in once]
        yield matched(f"step: {name}", pairs)


def _step(name: str) -> str:
    return "time" if name == "total" else name


def rows(
    kind: str,
    told: list[dict[str, Any]],
    ours: pl.DataFrame,
    columns: dict[str, str],
    *,
    scale: int,
) -> Iterator[Row]:
    """Rows by name."""
    found = {row["name"]: row for row in ours.iter_rows(named=True)}
    both = [row for row in told if row["name"] in found]
    if scale == US:
        yield Row(f"{kind}: names", len(both), max(len(told), len(found)), "")
    for theirs, mine in columns.items():
        factor = 1 if theirs == "count" else scale
        pairs = [
            (row["name"], row[theirs] * factor, found[row["name"]][mine])
            for row in both
            if row.get(theirs) is not None
        ]
        yield matched(f"{kind}: {mine}", pairs)


def matched(figure: str, pairs: list[tuple[str, float, float | None]]) -> Row:
    off = [(abs(a - (b or 0)), name, a, b) for name, a, b in pairs if not close(a, b)]
    worst = ""
    if off:
        _, name, a, b = max(off, key=lambda item: item[0])
        worst = f"`{name[:40]}` {a:.6g}, {'unknown' if b is None else f'{b:.6g}'}"
    return Row(figure, len(pairs) - len(off), len(pairs), worst)


def close(theirs: float, ours: float | None) -> bool:
    return ours is not None and abs(theirs - ours) <= max(CLOSE_NS, 1e-6 * abs(theirs))


if __name__ == "__main__":
    main()
