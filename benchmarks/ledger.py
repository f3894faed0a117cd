"""What the ledger of a run costs each step, during the run and after its recording.

    python benchmarks/ledger.py [-n ROUNDS] [--ms 0.1 1 10 100]

A training program on one thread, whose steps take about as many milliseconds, times its own steps.
In each round it runs three times, in an order that changes from round to round: alone, under
`selftime run --light`, and under `selftime run`. Of each run the median of its last steps counts,
which come long after any recording. Told are medians over rounds of the difference and the ratio to
the run alone in the same round, with an interval in which that median lies with 95 % confidence,
and the largest memory of the process.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from medians import interval
from sheets import Column, Table, add_format, show, table

PROGRAM: Final = """
import resource, sys, time
import torch
torch.set_num_threads(1)
products, steps = int(sys.argv[1]), int(sys.argv[2])
net = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
batch, weight = torch.randn(32, 64), torch.eye(64)
taken = []
for _ in range(steps):
    began = time.perf_counter_ns()
    for _ in range(products):
        batch = batch @ weight
    net(batch).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    taken.append(time.perf_counter_ns() - began)
last = sorted(taken[len(taken) // 2 :])
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("measured", last[len(last) // 2], memory * 1024)
"""
WAYS: Final = {
    "alone": (),
    "light": ("-m", "selftime", "run", "--light", "-q", "-o", "runs"),
    "run": ("-m", "selftime", "run", "-q", "-o", "runs"),
}
SECONDS: Final = 4.0
"""How long the steps of one run take together."""

COLUMNS: Final = (
    Column("way", "under"),
    Column("step_ms", "a step alone", "ms"),
    Column("added_us", "µs added to a step", "ms/MB"),
    Column("low_us", "from, µs", "ms/MB"),
    Column("high_us", "to, µs", "ms/MB"),
    Column("ratio", "÷ alone", "x"),
    Column("memory_mb", "MB of memory added", "ms/MB"),
)


def measure(folder: Path, way: str, products: int, steps: int) -> tuple[float, float]:
    """The median of the last steps in ns, and the largest memory in bytes."""
    words = [sys.executable, *WAYS[way], "program.py", str(products), str(steps)]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=True, env={**os.environ}
    )
    [line] = [line for line in done.stdout.splitlines() if line.startswith("measured")]
    _, step, memory = line.split()
    return float(step), float(memory)


def compare(rounds: int, milliseconds: list[float]) -> Table:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        empty, _ = measure(folder, "alone", 0, 2_000)
        thousand, _ = measure(folder, "alone", 1_000, 100)
        product = max((thousand - empty) / 1_000, 1.0)
        for wanted in milliseconds:
            products = max(0, round((wanted * 1e6 - empty) / product))
            steps = max(60, round(SECONDS / (wanted / 1e3)))
            found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
            for turn in range(rounds):
                order = list(WAYS)[turn % 3 :] + list(WAYS)[: turn % 3]
                for way in order:
                    found[way].append(measure(folder, way, products, steps))
            rows += [row(way, found["alone"], found[way]) for way in ("light", "run")]
    return table(
        "ledger", "ledger", "What a step costs more while its run is written down", COLUMNS, rows
    )


def row(
    way: str, alone: list[tuple[float, float]], under: list[tuple[float, float]]
) -> dict[str, object]:
    added = [(there[0] - here[0]) / 1e3 for here, there in zip(alone, under, strict=True)]
    low, high = interval(added)
    ratios = [there[0] / here[0] for here, there in zip(alone, under, strict=True)]
    memory = [(there[1] - here[1]) / 1e6 for here, there in zip(alone, under, strict=True)]
    return {
        "way": "selftime run --light" if way == "light" else "selftime run",
        "step_ms": statistics.median(step for step, _ in alone) / 1e6,
        "added_us": statistics.median(added),
        "low_us": low,
        "high_us": high,
        "ratio": statistics.median(ratios),
        "memory_mb": statistics.median(memory),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_format(parser)
    parser.add_argument("-n", type=int, default=9, help="rounds (default: 9)")
    parser.add_argument("--ms", type=float, nargs="+", default=[0.1, 1, 10, 100])
    options = parser.parse_args()
    show([compare(options.n, options.ms)], options.format)


if __name__ == "__main__":
    main()
