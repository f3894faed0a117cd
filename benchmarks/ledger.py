"""What the ledger of a run costs each step, and what a recording costs the whole run.

    python benchmarks/ledger.py [-n ROUNDS] [--ms 0.1 1 10 100]

A training program on one thread, whose steps take about as many milliseconds, times its own steps.
In each round it runs three times, in an order that changes from round to round: alone, under
`selftime run --light`, and under `selftime run`. Of each run the median of its last steps counts,
which come long after any recording, and the time of all steps together, with the recording. Medians
over rounds are told of the difference and the ratio to the run alone in the same round, with an
interval in which that median lies with 95 % confidence, and the largest memory of the process.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

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
first = time.perf_counter_ns()
for _ in range(steps):
    began = time.perf_counter_ns()
    for _ in range(products):
        batch = batch @ weight
    net(batch).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    taken.append(time.perf_counter_ns() - began)
whole = time.perf_counter_ns() - first
last = sorted(taken[len(taken) // 2 :])
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("measured", last[len(last) // 2], memory * 1024, whole)
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
    Column("all_ms", "ms added to all steps", "ms/MB"),
    Column("memory_mb", "MB of memory added", "ms/MB"),
)


class Measured(NamedTuple):
    """What one run of the program took."""

    step_ns: float
    """Median of the last half of its steps."""
    memory: float
    """Largest memory of the process, in bytes."""
    all_ns: float
    """Time of all steps together, with what lies between them."""


def measure(folder: Path, way: str, products: int, steps: int) -> Measured:
    words = [sys.executable, *WAYS[way], "program.py", str(products), str(steps)]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=True, env={**os.environ}
    )
    [line] = [line for line in done.stdout.splitlines() if line.startswith("measured")]
    _, step, memory, whole = line.split()
    return Measured(float(step), float(memory), float(whole))


def compare(rounds: int, milliseconds: list[float]) -> Table:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        empty = measure(folder, "alone", 0, 2_000).step_ns
        thousand = measure(folder, "alone", 1_000, 100).step_ns
        product = max((thousand - empty) / 1_000, 1.0)
        for wanted in milliseconds:
            products = max(0, round((wanted * 1e6 - empty) / product))
            steps = max(60, round(SECONDS / (wanted / 1e3)))
            found: dict[str, list[Measured]] = {way: [] for way in WAYS}
            for turn in range(rounds):
                order = list(WAYS)[turn % 3 :] + list(WAYS)[: turn % 3]
                for way in order:
                    found[way].append(measure(folder, way, products, steps))
            rows += [row(way, found["alone"], found[way]) for way in ("light", "run")]
    return table(
        "ledger", "ledger", "What a step costs more while its run is written down", COLUMNS, rows
    )


def row(way: str, alone: list[Measured], under: list[Measured]) -> dict[str, object]:
    pairs = list(zip(alone, under, strict=True))
    added = [(there.step_ns - here.step_ns) / 1e3 for here, there in pairs]
    low, high = interval(added)
    return {
        "way": "selftime run --light" if way == "light" else "selftime run",
        "step_ms": statistics.median(here.step_ns for here in alone) / 1e6,
        "added_us": statistics.median(added),
        "low_us": low,
        "high_us": high,
        "ratio": statistics.median(there.step_ns / here.step_ns for here, there in pairs),
        "all_ms": statistics.median((there.all_ns - here.all_ns) / 1e6 for here, there in pairs),
        "memory_mb": statistics.median((there.memory - here.memory) / 1e6 for here, there in pairs),
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
