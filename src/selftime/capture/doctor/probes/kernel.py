"""Records one kernel; checks its timestamps and that the trace links it to its launch call."""

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import torch
from torch.profiler import ProfilerActivity

from selftime.capture.doctor.probes.devices import device_type_and_module
from selftime.capture.profiler.profile import Profile

_TRACER_LIBRARY_PREFIXES: Final = (
    "libcupti",
    "libroctracer",
    "librocprofiler",
    "libpti",
    "libnvperf",
    "libToolsInj",
)
"""Prefixes of the names of libraries that trace devices for profilers."""

_CATEGORY_OF_KERNELS: Final = "kernel"
_CATEGORIES_OF_LAUNCH_CALLS: Final = ("cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime")
"""Trace categories of the runtime calls that may launch a kernel."""

_VERSION_KEYS_OF_TRACE: Final = ("cupti_version", "cuda_runtime_version", "cuda_driver_version",
                    "hip_runtime_version", "hip_driver_version", "roctracer_version")  # fmt: skip


def record_one_kernel() -> dict[str, Any]:
    found = device_type_and_module()
    if found is None:
        raise RuntimeError("this build of PyTorch supports no device")
    kind, module = found
    rows = torch.ones(1 << 20, device=kind)
    rows.mul(2)
    module.synchronize()
    # The profiler misses events right after it starts, so a warm-up step comes first.
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    device = ProfilerActivity.CUDA if kind == "cuda" else ProfilerActivity.XPU
    with tempfile.TemporaryDirectory(prefix="selftime-") as folder:
        with Profile(activities=[ProfilerActivity.CPU, device], schedule=schedule) as profile:
            profile.step()
            before = time.time_ns()
            rows.mul(2)
            module.synchronize()
            after = time.time_ns()
            profile.step()
        path = Path(folder, "trace.json")
        profile.write_trace(path)
        trace = json.loads(path.read_text(encoding="utf-8"))
    return {**summarize_kernel_trace(trace, before, after), "libraries": _loaded_tracer_libraries()}


def summarize_kernel_trace(trace: dict[str, Any], before: int, after: int) -> dict[str, Any]:
    """Counts kernels and those linked to launch calls, and checks their start times (ns)."""
    rows = [row for row in trace["traceEvents"] if row.get("ph") == "X"]
    kernels = [row for row in rows if row.get("cat") == _CATEGORY_OF_KERNELS]
    launches = {
        row["args"]["correlation"]: row
        for row in rows
        if row.get("cat") in _CATEGORIES_OF_LAUNCH_CALLS and "correlation" in row.get("args", {})
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
        "versions": {name: trace[name] for name in _VERSION_KEYS_OF_TRACE if name in trace},
    }


def _loaded_tracer_libraries() -> list[str]:
    """Returns the paths of device-tracing libraries that this process has loaded."""
    try:
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    paths = {line.partition("/")[2] for line in mapped.splitlines() if "/" in line}
    return sorted(
        f"/{path}" for path in paths if Path(path).name.startswith(_TRACER_LIBRARY_PREFIXES)
    )
