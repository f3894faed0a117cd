"""Recordings of a program whose operators' times are known."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from selftime.ingest.load import load
from selftime.trace import Trace

__all__ = ["Program", "record", "total"]

US = 1.0
GAP = 3 * US
LAUNCH = 2 * US


@dataclass(frozen=True)
class Program:
    """What runs in each step: operators, one after the other, each with one kernel."""

    operators: Mapping[str, float] = field(
        default_factory=lambda: {"aten::addmm": 400.0, "aten::relu": 50.0, "aten::sum": 20.0}
    )
    """How long the kernel of each takes, in us."""
    steps: int = 7
    noise: float = 0.01
    """Standard deviation of each time, by the time."""
    seed: int = 0
    kernel: str = "void {0}_kernel<float>()"
    """What kernels are called, by their operator."""
    device: bool = True
    """Whether there is one; else operators work themselves."""
    shapes: str = "[[64, 64]]"
    modules: bool = False
    """Whether frames of a module are recorded around the operators."""
    marked: bool = True
    """Whether steps are marked."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def record(program: Program, folder: Path, name: str) -> Trace:
    path = folder / f"{name}.json"
    events = list(_events(program))
    path.write_text(json.dumps({"traceEvents": events, **program.metadata}), encoding="utf-8")
    found = load(path, cache=False)
    assert isinstance(found, Trace)
    return found


def total(table: pl.DataFrame, column: str) -> float:
    return float(table[column].to_numpy().sum())


def _events(program: Program) -> list[dict[str, Any]]:
    draw = np.random.default_rng(program.seed)
    events: list[dict[str, Any]] = []

    def slice_(category: str, name: str, start: float, end: float, tid: int, **args: Any) -> None:
        pid = 0 if category == "kernel" else 1
        where = {"pid": pid, "tid": tid, "ts": round(start, 3), "dur": round(end - start, 3)}
        events.append({"ph": "X", "cat": category, "name": name, **where, "args": args})

    now, number = 0.0, 0
    for step in range(program.steps):
        begun = now
        for name, time in program.operators.items():
            number += 1
            start = now
            ids = {"External id": number, "correlation": number}
            kernel = time * (1 + program.noise * draw.standard_normal())
            if program.device:
                slice_("cuda_runtime", "cudaLaunchKernel", now + US, now + US + LAUNCH, 1, **ids)
            launched = now + US + LAUNCH
            called = program.kernel.format(name.removeprefix("aten::"))
            if program.device:
                slice_("kernel", called, launched, launched + kernel, 7, device=0, stream=7, **ids)
            now = launched + kernel + GAP  # the host waits for it
            told = {"External id": number, "Input Dims": json.loads(program.shapes)}
            slice_("cpu_op", name, start, now - 1, 1, **told)
        if program.modules:
            frame = {"Python id": step + 1, "Python module id": 0}
            slice_("python_function", "nn.Module: Net_0", begun, now - 0.5, 1, **frame)
        if program.marked:
            slice_("user_annotation", f"ProfilerStep#{step}", begun, now, 1)
        now += 5 * US
    return events
