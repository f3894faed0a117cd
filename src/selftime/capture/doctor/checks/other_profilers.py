"""Is there another profiler that would take the recorder or the device's tracer away?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from selftime.capture.doctor.observations import Finding, Place, Seen, State, Subject

_INJECTED: Final = (
    "CUDA_INJECTION64_PATH",
    "CUDA_INJECTION32_PATH",
    "NVTX_INJECTION64_PATH",
    "HSA_TOOLS_LIB",
    "ROCP_TOOL_LIB",
    "ROCP_TOOL_LIBRARIES",
    "ROCPROFILER_REGISTER_LIBRARY",
)
"""Variables by which Nsight Systems, Nsight Compute and rocprof put a library of theirs into every
process that uses a device (CUDA, NVTX, HSA and rocprofiler read them)."""

_PRELOADED: Final = ("libToolsInjection", "nsight", "rocprofiler", "roctracer", "rocprof-sys")
"""What their libraries are called where they come by LD_PRELOAD."""

_SERVICES: Final = {
    "nv-hostengine": "DCGM reads hardware counters, which recordings do not use",
    "dcgm-exporter": "DCGM reads hardware counters, which recordings do not use",
    "dynolog": "it may start recordings in programs that ask it, see KINETO_USE_DAEMON",
}
"""Programs that run beside, by the name of their process, and what that means."""


def check(seen: Seen) -> Iterator[Finding]:
    place = seen.place
    found = [name for name in _INJECTED if place.environment.get(name)]
    preloaded = place.environment.get("LD_PRELOAD", "")
    found += [f"LD_PRELOAD ({part})" for part in _PRELOADED if part in preloaded]
    if found:
        yield Finding(
            "other profilers",
            Subject.machine,
            State.warning,
            f"a profiler of the device is in every program from here: {', '.join(found)}",
            "start programs outside of nsys, ncu or rocprof, or unset these variables: a device "
            "is traced by one at a time",
        )
        return
    if place.environment.get("KINETO_USE_DAEMON"):
        yield Finding(
            "other profilers",
            Subject.machine,
            State.warning,
            "KINETO_USE_DAEMON is set: a daemon may start recordings of its own, and then ours "
            "are refused or empty",
            "unset KINETO_USE_DAEMON while you record",
        )
        return
    services = sorted(_running(place))
    told = "none" + "".join(f"; {name} runs: {_SERVICES[name]}" for name in services)
    yield Finding("other profilers", Subject.machine, State.ok, told)


def _running(place: Place) -> set[str]:
    """Services among the processes that can be seen."""
    names = (
        (place.text(str(Path("proc", file.parent.name, "comm"))) or "").strip()
        for file in place.listed("proc/[0-9]*/comm")
    )
    return set(names) & set(_SERVICES)
