"""Record one kernel: is it there, linked to its launch, and on the host's clock?"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import torch
from torch.profiler import ProfilerActivity

from selftime.capture.doctor.probes.devices import backend
from selftime.capture.profile import Profile

_TRACERS: Final = (
    "libcupti",
    "libroctracer",
    "librocprofiler",
    "libpti",
    "libnvperf",
    "libToolsInj",
)
"""How the libraries begin that trace devices for PyTorch, and those that other profilers inject."""

_KERNEL: Final = "kernel"
_RUNTIMES: Final = ("cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime")
"""Kineto's categories of rows."""

_VERSIONS: Final = ("cupti_version", "cuda_runtime_version", "cuda_driver_version",
                    "hip_runtime_version", "hip_driver_version", "roctracer_version")  # fmt: skip


def answer() -> dict[str, Any]:
    found = backend()
    if found is None:
        raise RuntimeError("this build of PyTorch knows no device")
    kind, module = found
    rows = torch.ones(1 << 20, device=kind)
    rows.mul(2)
    module.synchronize()
    # The recorder's first moments are not all recorded: it is warmed up as a schedule does.
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    device = ProfilerActivity.CUDA if kind == "cuda" else ProfilerActivity.XPU
    with tempfile.TemporaryDirectory(prefix="selftime-") as folder:
        with Profile(activities=[ProfilerActivity.CPU, device], schedule=plan) as profile:
            profile.step()
            before = time.time_ns()
            rows.mul(2)
            module.synchronize()
            after = time.time_ns()
            profile.step()
        path = Path(folder, "trace.json")
        profile.write_trace(path)
        trace = json.loads(path.read_text(encoding="utf-8"))
    return {**told(trace, before, after), "libraries": _libraries()}


def told(trace: dict[str, Any], before: int, after: int) -> dict[str, Any]:
    """What a trace holds of kernels that ran between two nanoseconds of the wall clock."""
    rows = [row for row in trace["traceEvents"] if row.get("ph") == "X"]
    kernels = [row for row in rows if row.get("cat") == _KERNEL]
    launches = {
        row["args"]["correlation"]: row
        for row in rows
        if row.get("cat") in _RUNTIMES and "correlation" in row.get("args", {})
    }
    linked = [(row, launches.get(row.get("args", {}).get("correlation"))) for row in kernels]
    base = int(trace.get("baseTimeNanoseconds", 0))
    starts = [base + round(float(row["ts"]) * 1000) for row in kernels]
    return {
        "kernels": len(kernels),
        "launches": len(launches),
        "linked": sum(launch is not None for _, launch in linked),
        "before_launch": sum(
            launch is not None and float(row["ts"]) < float(launch["ts"]) for row, launch in linked
        ),
        "clock_ok": all(before <= start <= after for start in starts),
        "versions": {name: trace[name] for name in _VERSIONS if name in trace},
    }


def _libraries() -> list[str]:
    """Files of tracers that this process has loaded."""
    try:
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    paths = {line.partition("/")[2] for line in mapped.splitlines() if "/" in line}
    return sorted(f"/{path}" for path in paths if Path(path).name.startswith(_TRACERS))
