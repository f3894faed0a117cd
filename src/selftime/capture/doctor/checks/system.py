"""Checks the operating system: WSL, a container, and the kernel's clock source."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from selftime.capture.doctor.hardware import container_kind, is_in_wsl
from selftime.capture.doctor.observations import (
    DoctorFinding,
    ExaminedMachine,
    FindingState,
    FindingSubject,
    MachineObservations,
)

_SLOW_CLOCK_SOURCES: Final = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")
"""Clock sources that take 1 µs or more to read, or that only tick every millisecond; the profiler
reads the clock twice for each operator (Documentation/timers of Linux)."""


def check_system(observations: MachineObservations) -> Iterator[DoctorFinding]:
    yield _operating_system_finding(observations.machine)
    yield _clock_source_finding(observations.machine)


def _operating_system_finding(machine: ExaminedMachine) -> DoctorFinding:
    container = container_kind(machine)
    where = [f"in a container ({container})"] if container else []
    if is_in_wsl(machine):
        return DoctorFinding(
            "system",
            FindingSubject.machine,
            FindingState.warning,
            " ".join(["WSL", *where]) + ": Windows controls the GPU, and its kernels are often not "
            "recorded",
            "update the driver of Windows, turn on `Manage GPU Performance Counters: allow all "
            "users` in the NVIDIA Control Panel; or record on Linux itself",
        )
    name = (machine.read_text("proc/sys/kernel/ostype") or "").strip()
    release = (machine.read_text("proc/sys/kernel/osrelease") or "").strip()
    if not name:
        seen = "this system has no /proc, so the resources of programs are unknown"
        return DoctorFinding("system", FindingSubject.machine, FindingState.unknown, seen)
    seen = " ".join([name, release, *where]).strip()
    return DoctorFinding("system", FindingSubject.machine, FindingState.ok, seen)


def _clock_source_finding(machine: ExaminedMachine) -> DoctorFinding:
    folder = "sys/devices/system/clocksource/clocksource0"
    current = (machine.read_text(f"{folder}/current_clocksource") or "").strip()
    if not current:
        seen = "the system does not report its clock source"
        return DoctorFinding("clock", FindingSubject.machine, FindingState.unknown, seen)
    if current not in _SLOW_CLOCK_SOURCES:
        seen = f"{current}, which is fast to read"
        return DoctorFinding("clock", FindingSubject.machine, FindingState.ok, seen)
    others = (machine.read_text(f"{folder}/available_clocksource") or "").split()
    better = [name for name in others if name not in _SLOW_CLOCK_SOURCES]
    cure = f"try `echo {better[0]}` into /{folder}/current_clocksource" if better else (
        "boot with `tsc=reliable` if the processor's counter is reliable; ask the administrator of "
        "a virtual machine's host for a better clock source"
    )  # fmt: skip
    return DoctorFinding(
        "clock",
        FindingSubject.machine,
        FindingState.warning,
        f"{current}, which is slow to read: each recorded operator costs microseconds more",
        cure,
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
