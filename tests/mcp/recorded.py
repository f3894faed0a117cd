"""A small recording with several things to find, as a file."""

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

__all__ = ["LOADER", "events", "run_apart", "written"]

LOADER: Final = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
_STEP: Final = 100_000.0
"""In us, as all times here."""


def written(path: Path, *, name: str = "aten::mm", steps: int = 6) -> Path:
    """A trace of so many steps, whose operators have a name of one's own choice."""
    whole = {
        "schemaVersion": 1,
        "with_stack": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 1 << 36}],
        "traceEvents": events(name, steps),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def events(name: str, steps: int) -> list[dict[str, Any]]:
    """Steps that load on the main thread, compute on the device, and read a number in between."""
    found: list[dict[str, Any]] = []

    def slice_(category: str, called: str, start: float, time: float, **args: Any) -> None:
        place = {"pid": 0, "tid": 7} if category == "kernel" else {"pid": 1, "tid": 1}
        when = {"ts": start, "dur": time}
        found.append({"ph": "X", "cat": category, "name": called, **place, **when, "args": args})

    for step in range(steps):
        begin, number = step * _STEP, 100 * step
        slice_("user_annotation", f"ProfilerStep#{step}", begin, _STEP - 100 + step)
        slice_("python_function", "train.py(12): main", begin + 1, _STEP - 200)
        slice_("user_annotation", LOADER, begin + 10, 30_000.0 + 7 * step)
        for at in range(3):
            start = begin + 31_000 + 20_000.0 * at
            ids = {"correlation": number + at + 1, "External id": number + at + 1}
            slice_("cpu_op", name, start, 1_000.0, **ids)
            slice_("cuda_runtime", "cudaLaunchKernel", start + 100, 20.0, **ids)
            kernel = {**ids, "device": 0, "stream": 7, "grid": [64, 1, 1], "block": [256, 1, 1]}
            slice_("kernel", f"void {name}_kernel<float>()", start + 200, 9_000.0 + at, **kernel)
            slice_("cpu_op", "aten::item", start + 2_000, 7_400.0)
            slice_("cpu_op", "aten::_local_scalar_dense", start + 2_010, 7_380.0)
            slice_("cuda_runtime", "cudaStreamSynchronize", start + 2_100, 7_200.0)
    return found


def run_apart(asked: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine in a thread of its own: this one may have the event loop of a browser."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, asked).result()
