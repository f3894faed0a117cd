"""Checks whether another profiler prevents PyTorch's profiler from recording kernels."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from selftime.capture.doctor.observations import (
    DoctorFinding,
    ExaminedMachine,
    FindingState,
    FindingSubject,
    MachineObservations,
)

_PROFILER_INJECTION_VARIABLES: Final = (
    "CUDA_INJECTION64_PATH",
    "CUDA_INJECTION32_PATH",
    "NVTX_INJECTION64_PATH",
    "HSA_TOOLS_LIB",
    "ROCP_TOOL_LIB",
    "ROCP_TOOL_LIBRARIES",
    "ROCPROFILER_REGISTER_LIBRARY",
)
"""Environment variables by which Nsight Systems, Nsight Compute and rocprof load their libraries
into every process that uses a device (CUDA, NVTX, HSA and rocprofiler read them)."""

_PROFILER_LIBRARY_NAME_PARTS: Final = (
    "libToolsInjection",
    "nsight",
    "rocprofiler",
    "roctracer",
    "rocprof-sys",
)
"""Texts that occur in the file names of other profilers' libraries in LD_PRELOAD."""

_EFFECT_BY_PROFILING_SERVICE: Final = {
    "nv-hostengine": "DCGM reads hardware counters, which recordings do not use",
    "dcgm-exporter": "DCGM reads hardware counters, which recordings do not use",
    "dynolog": "it may start recordings in programs that connect to it, see KINETO_USE_DAEMON",
}
"""Maps the process name of a profiling service to its effect on recordings."""


def check_other_profilers(observations: MachineObservations) -> Iterator[DoctorFinding]:
    machine = observations.machine
    found = [name for name in _PROFILER_INJECTION_VARIABLES if machine.environment.get(name)]
    preloaded = machine.environment.get("LD_PRELOAD", "")
    found += [f"LD_PRELOAD ({part})" for part in _PROFILER_LIBRARY_NAME_PARTS if part in preloaded]
    if found:
        yield DoctorFinding(
            "other profilers",
            FindingSubject.machine,
            FindingState.warning,
            f"a device profiler is loaded into every program started here: {', '.join(found)}",
            "start programs outside of nsys, ncu or rocprof, or unset these variables: only one "
            "profiler can trace a device at a time",
        )
        return
    if machine.environment.get("KINETO_USE_DAEMON"):
        yield DoctorFinding(
            "other profilers",
            FindingSubject.machine,
            FindingState.warning,
            "KINETO_USE_DAEMON is set: a daemon may start recordings, and those of selftime then "
            "fail or are empty",
            "unset KINETO_USE_DAEMON while you record",
        )
        return
    services = sorted(_running_profiling_services(machine))
    seen = "none" + "".join(
        f"; {name} runs: {_EFFECT_BY_PROFILING_SERVICE[name]}" for name in services
    )
    yield DoctorFinding("other profilers", FindingSubject.machine, FindingState.ok, seen)


def _running_profiling_services(machine: ExaminedMachine) -> set[str]:
    """Returns the names of running processes that are known profiling services."""
    names = (
        (machine.read_text(str(Path("proc", file.parent.name, "comm"))) or "").strip()
        for file in machine.find_files("proc/[0-9]*/comm")
    )
    return set(names) & set(_EFFECT_BY_PROFILING_SERVICE)
