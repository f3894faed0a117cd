"""What a recording costs a program: its steps while they are recorded, and how long it is held.

    python benchmarks/recording.py [-n ROUNDS] [--parts steps held]

Steps: three small programs, in each round one after the other without a recorder, with
`torch.profiler.profile`, and with `selftime.profile` and the same arguments; the order changes from
round to round. Told are medians over rounds of the ratio of two neighbouring runs: what PyTorch's
recorder costs a step, and what ours costs beside it, with an interval in which that median lies
with 95 % confidence, of order statistics and free of assumptions on how times are spread. They run
on one thread: what a recorder costs is spent there.

Held: a loop under `selftime run` notes when its steps begin. The longest pause is the end of the
recording, in which PyTorch gathers its events; the steps while the file is written are compared
with those before.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from medians import interval
from sheets import Column, Table, add_format, show, table
from torch import nn

import selftime
from selftime.capture.profiler.profiler_stderr import hide_usdt_lines
from selftime.ingest.load import load
from selftime.trace import Trace

RECORDED = 5
PLANS: tuple[dict[str, bool], ...] = (
    {},
    {"record_shapes": True},
    {"record_shapes": True, "with_stack": True},
)


def small() -> Callable[[], None]:
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    return step_of(net, lambda: torch.randn(32, 64))


def convolutions() -> Callable[[], None]:
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1))
    return step_of(net, lambda: torch.randn(8, 3, 32, 32))


def attention() -> Callable[[], None]:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    net = nn.Sequential(nn.TransformerEncoder(layer, 4), nn.Linear(64, 1))
    return step_of(net, lambda: torch.randn(4, 32, 64))


def step_of(net: nn.Module, batch: Callable[[], torch.Tensor]) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(net.parameters())

    def step() -> None:
        loss = net(batch()).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def plain(step: Callable[[], None]) -> float:
    """The shortest of a few steps, in seconds."""
    return min(timed(step) for _ in range(RECORDED))


def recorded(profiler: Any, step: Callable[[], None], options: dict[str, bool]) -> float:
    plan = torch.profiler.schedule(wait=0, warmup=1, active=RECORDED, repeat=1)
    times = []
    with hide_usdt_lines(), profiler(schedule=plan, **options) as prof:
        step()
        for _ in range(RECORDED):
            prof.step()
            times.append(timed(step))
        prof.step()
    return min(times)


def sample(
    step: Callable[[], None], options: dict[str, bool], turn: int
) -> tuple[float, float, float]:
    """A step of each kind; whichever comes later has no advantage over the rounds."""
    kinds: list[Callable[[], float]] = [
        lambda: plain(step),
        lambda: recorded(torch.profiler.profile, step, options),
        lambda: recorded(selftime.profile, step, options),
    ]
    found = {at % 3: kinds[at % 3]() for at in range(turn, turn + 3)}
    return found[0], found[1], found[2]


def timed(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


STEPS = (
    Column("program", "program"),
    Column("flags", "flags"),
    Column("step_ms", "a step", "ms"),
    Column("x_plain", "torch ÷ plain", "x"),
    Column("x_torch", "selftime ÷ torch", "x"),
    Column("low", "from", "x"),
    Column("high", "to", "x"),
)


def compare_steps(rounds: int) -> Table:
    torch.set_num_threads(1)  # threads that wait for a core would outweigh any recorder
    rows = []
    for make in (small, convolutions, attention):
        step = make()
        for _ in range(10):
            step()
        for options in PLANS:
            samples = [sample(step, options, turn) for turn in range(rounds)]
            beside = [c / b for _, b, c in samples]
            low, high = interval(beside)
            figures = {
                "step_ms": 1e3 * statistics.median(a for a, _, _ in samples),
                "x_plain": statistics.median(b / a for a, b, _ in samples),
                "x_torch": statistics.median(beside),
                "low": low,
                "high": high,
            }
            rows.append(
                {"program": make.__name__, "flags": ", ".join(options) or "none", **figures}
            )
    title = "A step while it is recorded"
    return table("recording", "steps", title, STEPS, rows, {"rounds": rounds})


LOOP = """
import json, sys, time
from pathlib import Path
import torch

net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, began = torch.ones(8), []
last = time.monotonic() + float(sys.argv[2])
while time.monotonic() < last:
    began.append((time.perf_counter(), bool(list(Path("selftime-runs").glob(".*.tmp")))))
    for _ in range(int(sys.argv[1])):
        x = x * 1.0001
    net(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
Path("steps.json").write_text(json.dumps(began))
"""


HELD = (
    Column("operators", "operators a step", "count"),
    Column("step_ms", "a step", "ms"),
    Column("recorded", "steps recorded", "count"),
    Column("pause_s", "longest pause", "s"),
    Column("x_beside", "a step while written ÷ before", "x"),
)


def compare_holds(rounds: int) -> Table:
    rows = []
    for operators in (300, 3000, 10_000):
        found = [held(operators) for _ in range(rounds)]
        beside = [f.beside for f in found if f.beside is not None]
        rows.append(
            {
                "operators": operators,
                "step_ms": 1e3 * statistics.median(f.usual for f in found),
                "recorded": statistics.median(f.recorded for f in found),
                "pause_s": statistics.median(f.pause for f in found),
                "x_beside": statistics.median(beside) if beside else None,
            }
        )
    title = "A loop under `selftime run`"
    return table("recording", "held", title, HELD, rows, {"rounds": rounds})


class Held(NamedTuple):
    """What a loop noticed of its recording; times in seconds."""

    usual: float
    pause: float
    recorded: int
    beside: float | None
    """A step while the file is written, in usual ones; None if none fell into that time."""


def held(operators: int) -> Held:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "loop.py").write_text(LOOP)
        command = [sys.executable, "-m", "selftime", "run", "-q", "loop.py", str(operators), "25"]
        subprocess.run(command, cwd=folder, check=True, stderr=subprocess.DEVNULL)
        began = json.loads(Path(folder, "steps.json").read_text())
        trace = cast("Trace", load(next(Path(folder, "selftime-runs").glob("*.gz"))))
        recorded = trace.view("steps").height
    gaps = [(b[0] - a[0], a[1] and b[1]) for a, b in itertools.pairwise(began)]
    usual = statistics.median(gap for gap, _ in gaps)
    writing = [gap for gap, written in gaps if written]
    beside = statistics.median(writing) / usual if writing else None
    return Held(usual, max(gap for gap, _ in gaps[3:]), recorded, beside)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_format(parser)
    parser.add_argument("-n", type=int, default=31, help="rounds (default: 31)")
    parser.add_argument("--parts", nargs="+", choices=("steps", "held"), default=["steps", "held"])
    options = parser.parse_args()
    tables = []
    if "steps" in options.parts:
        tables.append(compare_steps(options.n))
    if "held" in options.parts:
        tables.append(compare_holds(max(1, options.n // 10)))
    show(tables, options.format)


if __name__ == "__main__":
    main()
