"""What a recording costs a program: its steps while they are recorded, and how long it is held.

    python benchmarks/recording.py [ROUNDS]

Steps: three small programs, in each round one after the other without a recorder, with
`torch.profiler.profile`, and with `selftime.profile` and the same arguments. The first column is
what PyTorch's recorder costs a step, the second what ours costs beside it.

Held: a loop under `selftime run` notes when its steps begin. The longest pause is the end of the
recording, in which PyTorch gathers its events; the steps while the file is written are compared
with those before.
"""

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
from torch import nn

import selftime
from selftime.ingest import load
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
    with profiler(schedule=plan, **options) as prof:
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


def compare_steps(rounds: int) -> None:
    print(f"{'program':<14}{'flags':<27}{'step':>9}{'torch / plain':>15}{'ours / torch':>14}")
    for make in (small, convolutions, attention):
        step = make()
        for _ in range(10):
            step()
        for options in PLANS:
            samples = [sample(step, options, turn) for turn in range(rounds)]
            bare = statistics.median(a for a, _, _ in samples)
            cost = statistics.median(b / a for a, b, _ in samples)
            beside = statistics.median(c / b for _, b, c in samples)
            flags = "+".join(options) or "none"
            print(
                f"{make.__name__:<14}{flags:<27}{bare * 1e3:>6.2f} ms{cost:>15.2f}{beside:>14.3f}"
            )


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


def compare_holds(rounds: int) -> None:
    print()
    print(f"{'operators a step':<18}{'step':>10}{'recorded':>10}{'longest pause':>15}", end="")
    print(f"{'step while written / before':>29}")
    for operators in (300, 3000, 10_000):
        found = [held(operators) for _ in range(rounds)]
        usual = statistics.median(f.usual for f in found)
        pause = statistics.median(f.pause for f in found)
        beside = [f.beside for f in found if f.beside is not None]
        ratio = f"{statistics.median(beside):.2f}" if beside else "-"
        steps = statistics.median(f.recorded for f in found)
        print(f"{operators:<18}{usual * 1e3:>7.1f} ms{steps:>10.0f}{pause:>13.2f} s{ratio:>29}")


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
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    compare_steps(rounds)
    compare_holds(max(1, rounds // 5))


if __name__ == "__main__":
    main()
