"""Checks whether kernels can be recorded: the device's tracing library and its permissions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from selftime.capture.doctor.observations import (
    DoctorFinding,
    ExaminedMachine,
    FindingState,
    FindingSubject,
    MachineObservations,
)

_CAP_SYS_ADMIN_BIT_MASK: Final = 1 << 21
"""Bit mask of the capability CAP_SYS_ADMIN in a process's capability set (capabilities(7))."""

_TRACER_MESSAGES_AND_REMEDIES: Final = (
    (("MULTIPLE_SUBSCRIBERS",),
     "another profiler is in the process: run without nsys, ncu or other tools that inject one"),
    (("INSUFFICIENT_PRIVILEGES", "insufficient privileges"),
     "let users profile: NVreg_RestrictProfilingToAdminUsers=0, or a container's SYS_ADMIN"),
    (("VIRTUALIZED_DEVICE_NOT_SUPPORTED",),
     "the virtual GPU may not be traced: its host must enable profiling"),
    (("CUPTI_ERROR_NOT_INITIALIZED", "CUPTI initialization failed", "libcupti"),
     "PyTorch's CUPTI does not load: remove others from LD_LIBRARY_PATH, and update the driver"),
)  # fmt: skip
"""Pairs (texts in error messages of device tracing libraries, what the user can do about the
error)."""


def check_device_tracing(observations: MachineObservations) -> Iterator[DoctorFinding]:
    build = observations.host.answer("build")
    if build is None:
        return
    devices = observations.devices.answer("devices")
    if devices is not None and devices["count"]:
        yield from _kernel_recording_findings(observations, build, devices["kind"])
    if build["cuda"]:
        yield from _foreign_cupti_findings(observations.machine, build)
    yield from _profiling_permission_findings(observations)


def _kernel_recording_findings(
    observations: MachineObservations, build: Mapping[str, Any], kind: str
) -> Iterator[DoctorFinding]:
    activity = "XPU" if kind == "xpu" else "CUDA"
    if activity not in build["activities"]:
        yield _finding_on_kernel_recording(
            FindingState.problem,
            f"this PyTorch was built without the tracer of {activity}: kernels are not recorded",
            "install an official build of PyTorch; some distributors leave the tracer out",
        )
        return
    kernel = observations.devices.answer("kernel")
    if kernel is None:
        why = observations.devices.error("kernel")
        if why is None:
            yield _finding_on_kernel_recording(FindingState.unknown, "was not tested")
        else:
            yield _finding_on_kernel_recording(
                FindingState.problem,
                f"a recording of one kernel failed: {why}",
                _remedy_for_tracer_messages(observations.devices.stderr),
            )
        return
    yield _finding_on_recorded_kernel(kernel, observations.devices.stderr)
    yield from _device_clock_findings(kernel)
    yield _loaded_tracer_library_finding(kernel, build)


def _finding_on_kernel_recording(
    state: FindingState, seen: str, cure: str | None = None
) -> DoctorFinding:
    return DoctorFinding("kernel", FindingSubject.device, state, seen, cure)


def _finding_on_recorded_kernel(kernel: Mapping[str, Any], stderr: str) -> DoctorFinding:
    count, linked = kernel["kernels"], kernel["linked"]
    if not count:
        launches = kernel["launches"]
        seen = f"{launches} calls of the runtime were recorded, but no kernel"
        return _finding_on_kernel_recording(
            FindingState.problem, seen, _remedy_for_tracer_messages(stderr)
        )
    if linked < count:
        return _finding_on_kernel_recording(
            FindingState.warning,
            f"{count} kernels were recorded, {count - linked} of them without their launch",
            "advice on launches will not cover them; update PyTorch and the driver",
        )
    return _finding_on_kernel_recording(FindingState.ok, "a kernel and its launch were recorded")


def _remedy_for_tracer_messages(stderr: str) -> str:
    """Returns what the user can do about messages that the tracing library wrote to stderr."""
    for signs, cure in _TRACER_MESSAGES_AND_REMEDIES:
        if any(sign in stderr for sign in signs):
            return cure
    return (
        "see the other findings on the device; run again with KINETO_LOG_LEVEL=0 in the "
        "environment to see the profiler's messages"
    )


def _device_clock_findings(kernel: Mapping[str, Any]) -> Iterator[DoctorFinding]:
    if not kernel["kernels"]:
        return
    early = kernel["before_launch"]
    if kernel["clock_ok"] and not early:
        seen = "kernels are recorded after their launch, and while the program waited"
        yield DoctorFinding("device clock", FindingSubject.device, FindingState.ok, seen)
        return
    seen = "the kernel was recorded outside of the time in which it ran"
    if early:
        seen = "the kernel was recorded before its launch: the device's clock is not the host's"
    yield DoctorFinding(
        "device clock",
        FindingSubject.device,
        FindingState.warning,
        seen,
        "idle times and waits will be wrong by the difference; update the driver, or record again",
    )


def _loaded_tracer_library_finding(
    kernel: Mapping[str, Any], build: Mapping[str, Any]
) -> DoctorFinding:
    loaded = list(kernel["libraries"])
    tracers = [path for path in loaded if not Path(path).name.startswith(("libnvperf", "libTools"))]
    if not tracers:
        seen = "no known library that traces devices was found in the process"
        return DoctorFinding("tracer", FindingSubject.device, FindingState.unknown, seen)
    seen = ", ".join([*tracers, *_library_version_texts(kernel["versions"])])
    cupti = [path for path in tracers if Path(path).name.startswith("libcupti")]
    majors = {_cupti_major_version(path) for path in cupti} - {None}
    if len(cupti) > 1:
        return DoctorFinding(
            "tracer",
            FindingSubject.device,
            FindingState.warning,
            f"more than one CUPTI is loaded: {', '.join(cupti)}",
            "remove other CUDA folders from LD_LIBRARY_PATH and LD_PRELOAD",
        )
    if majors and build["cuda"] and majors != {build["cuda"].partition(".")[0]}:
        return DoctorFinding(
            "tracer",
            FindingSubject.device,
            FindingState.warning,
            f"{cupti[0]} is not of CUDA {build['cuda']}, for which PyTorch was built",
            "remove other CUDA folders from LD_LIBRARY_PATH",
        )
    return DoctorFinding("tracer", FindingSubject.device, FindingState.ok, seen)


def _cupti_major_version(path: str) -> str | None:
    """Returns the CUDA major version in a file name like `libcupti.so.12`; None for other names."""
    version = Path(path).name.partition(".so.")[2]
    return version if version.isdecimal() else None


def _library_version_texts(versions: Mapping[str, Any]) -> list[str]:
    return [f"{name.removesuffix('_version')} {value}" for name, value in versions.items()]


def _foreign_cupti_findings(
    machine: ExaminedMachine, build: Mapping[str, Any]
) -> Iterator[DoctorFinding]:
    """Yields a warning if LD_LIBRARY_PATH has a CUPTI library that is not PyTorch's own."""
    own = Path(build["file"]).parents[1]
    found = [
        str(file)
        for folder in machine.search_path_folders("LD_LIBRARY_PATH")
        if not folder.is_relative_to(own)
        for file in sorted(folder.glob("libcupti.so*"))[:1]
    ]
    if found:
        yield DoctorFinding(
            "cupti",
            FindingSubject.device,
            FindingState.warning,
            f"{found[0]} is on LD_LIBRARY_PATH and may be loaded instead of PyTorch's own",
            "remove that folder from LD_LIBRARY_PATH if kernels are missing or programs crash",
        )


def _profiling_permission_findings(observations: MachineObservations) -> Iterator[DoctorFinding]:
    params = observations.machine.read_text("proc/driver/nvidia/params")
    if params is None:
        return
    restricted = observations.machine.read_named_values("proc/driver/nvidia/params").get(
        "RmProfilingAdminOnly"
    )
    kernel = observations.devices.answer("kernel")
    if restricted is None:
        seen = "the driver does not report whether users may profile"
        yield DoctorFinding("permission", FindingSubject.device, FindingState.unknown, seen)
    elif restricted == "0":
        seen = "every user may trace kernels and read hardware counters"
        yield DoctorFinding("permission", FindingSubject.device, FindingState.ok, seen)
    elif _has_sys_admin_capability(observations.machine):
        seen = "only administrators may read hardware counters; this process may"
        yield DoctorFinding("permission", FindingSubject.device, FindingState.ok, seen)
    elif kernel is not None and not kernel["kernels"]:
        yield DoctorFinding(
            "permission",
            FindingSubject.device,
            FindingState.problem,
            "the driver lets only administrators profile, and no kernel was recorded",
            "set NVreg_RestrictProfilingToAdminUsers=0 for the module nvidia, and restart; in a "
            "container add `--cap-add SYS_ADMIN`",
        )
    else:
        seen = "hardware counters are for administrators; recordings do not need them"
        yield DoctorFinding("permission", FindingSubject.device, FindingState.ok, seen)


def _has_sys_admin_capability(machine: ExaminedMachine) -> bool:
    try:
        effective = int(machine.read_named_values("proc/self/status").get("CapEff", ""), 16)
    except ValueError:
        return False
    return bool(effective & _CAP_SYS_ADMIN_BIT_MASK)
