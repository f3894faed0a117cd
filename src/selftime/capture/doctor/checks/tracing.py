"""Is the work of a device recorded, by which library, and may it be?"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from selftime.capture.doctor.observations import Finding, Place, Seen, State, Subject

_SYS_ADMIN: Final = 1 << 21
"""The bit of CAP_SYS_ADMIN in a process's capabilities (capabilities(7))."""

_CURES: Final = (
    (("MULTIPLE_SUBSCRIBERS",),
     "another profiler is in the process: leave out nsys, ncu or what else injects one"),
    (("INSUFFICIENT_PRIVILEGES", "insufficient privileges"),
     "let users profile: NVreg_RestrictProfilingToAdminUsers=0, or a container's SYS_ADMIN"),
    (("VIRTUALIZED_DEVICE_NOT_SUPPORTED",),
     "the virtual GPU is not allowed to be traced: its host must enable profiling"),
    (("CUPTI_ERROR_NOT_INITIALIZED", "CUPTI initialization failed", "libcupti"),
     "PyTorch's CUPTI does not load: take others out of LD_LIBRARY_PATH, and update the driver"),
)  # fmt: skip
"""What tracers say where they record nothing, and what helps."""


def check(seen: Seen) -> Iterator[Finding]:
    build = seen.host.answer("build")
    if build is None:
        return
    devices = seen.devices.answer("devices")
    if devices is not None and devices["count"]:
        yield from _tried(seen, build, devices["kind"])
    if build["cuda"]:
        yield from _foreign_cupti(seen.place, build)
    yield from _permission(seen)


def _tried(seen: Seen, build: Mapping[str, Any], kind: str) -> Iterator[Finding]:
    activity = "XPU" if kind == "xpu" else "CUDA"
    if activity not in build["activities"]:
        yield _finding(
            State.problem,
            f"this PyTorch was built without the tracer of {activity}: kernels are not recorded",
            "install an official build of PyTorch; some distributors build it without",
        )
        return
    kernel = seen.devices.answer("kernel")
    if kernel is None:
        why = seen.devices.why("kernel")
        if why is None:
            yield _finding(State.unknown, "was not tried")
        else:
            yield _finding(
                State.problem,
                f"a recording of one kernel failed: {why}",
                _cure(seen.devices.stderr),
            )
        return
    yield _captured(kernel, seen.devices.stderr)
    yield from _clock(kernel)
    yield _library(kernel, build)


def _finding(state: State, told: str, cure: str | None = None) -> Finding:
    return Finding("kernel", Subject.device, state, told, cure)


def _captured(kernel: Mapping[str, Any], stderr: str) -> Finding:
    count, linked = kernel["kernels"], kernel["linked"]
    if not count:
        launches = kernel["launches"]
        told = f"{launches} calls of the runtime were recorded, and no kernel"
        return _finding(State.problem, told, _cure(stderr))
    if linked < count:
        return _finding(
            State.warning,
            f"{count} kernels were recorded, {count - linked} of them without their launch",
            "advice on launches will lack them; update PyTorch and the driver",
        )
    return _finding(State.ok, "a kernel was recorded, and its launch")


def _cure(stderr: str) -> str:
    """By what the tracer wrote while it was tried."""
    for signs, cure in _CURES:
        if any(sign in stderr for sign in signs):
            return cure
    return (
        "see the other findings on the device; run again with KINETO_LOG_LEVEL=0 in the "
        "environment for what the recorder has to say"
    )


def _clock(kernel: Mapping[str, Any]) -> Iterator[Finding]:
    if not kernel["kernels"]:
        return
    early = kernel["before_launch"]
    if kernel["clock_ok"] and not early:
        told = "kernels are recorded after their launch, and while the program waited"
        yield Finding("device clock", Subject.device, State.ok, told)
        return
    told = "the kernel was recorded outside of the time in which it ran"
    if early:
        told = "the kernel was recorded before its launch: the device's clock is not the host's"
    yield Finding(
        "device clock",
        Subject.device,
        State.warning,
        told,
        "idle times and waits will be wrong by as much; update the driver, or record again",
    )


def _library(kernel: Mapping[str, Any], build: Mapping[str, Any]) -> Finding:
    loaded = list(kernel["libraries"])
    tracers = [path for path in loaded if not Path(path).name.startswith(("libnvperf", "libTools"))]
    if not tracers:
        told = "the library that traced the device could not be told"
        return Finding("tracer", Subject.device, State.unknown, told)
    told = ", ".join([*tracers, *_versions(kernel["versions"])])
    cupti = [path for path in tracers if Path(path).name.startswith("libcupti")]
    majors = {_major(path) for path in cupti} - {None}
    if len(cupti) > 1:
        return Finding(
            "tracer",
            Subject.device,
            State.warning,
            f"more than one CUPTI is loaded: {', '.join(cupti)}",
            "take other CUDA folders out of LD_LIBRARY_PATH and LD_PRELOAD",
        )
    if majors and build["cuda"] and majors != {build["cuda"].partition(".")[0]}:
        return Finding(
            "tracer",
            Subject.device,
            State.warning,
            f"{cupti[0]} is not of CUDA {build['cuda']}, for which PyTorch was built",
            "take other CUDA folders out of LD_LIBRARY_PATH",
        )
    return Finding("tracer", Subject.device, State.ok, told)


def _major(path: str) -> str | None:
    """The major version of CUDA in `libcupti.so.12`; none in a name by years, `.so.2024.3.2`."""
    version = Path(path).name.partition(".so.")[2]
    return version if version.isdecimal() else None


def _versions(versions: Mapping[str, Any]) -> list[str]:
    return [f"{name.removesuffix('_version')} {value}" for name, value in versions.items()]


def _foreign_cupti(place: Place, build: Mapping[str, Any]) -> Iterator[Finding]:
    """A CUPTI on the search path is loaded before the one that PyTorch brings."""
    own = Path(build["file"]).parents[1]
    found = [
        str(file)
        for folder in place.folders("LD_LIBRARY_PATH")
        if not folder.is_relative_to(own)
        for file in sorted(folder.glob("libcupti.so*"))[:1]
    ]
    if found:
        yield Finding(
            "cupti",
            Subject.device,
            State.warning,
            f"{found[0]} is on LD_LIBRARY_PATH and may be loaded in place of PyTorch's own",
            "take that folder out of LD_LIBRARY_PATH if kernels are missing or programs crash",
        )


def _permission(seen: Seen) -> Iterator[Finding]:
    params = seen.place.text("proc/driver/nvidia/params")
    if params is None:
        return
    restricted = seen.place.values("proc/driver/nvidia/params").get("RmProfilingAdminOnly")
    kernel = seen.devices.answer("kernel")
    if restricted is None:
        told = "the driver does not tell whether users may profile"
        yield Finding("permission", Subject.device, State.unknown, told)
    elif restricted == "0":
        told = "every user may trace kernels and read hardware counters"
        yield Finding("permission", Subject.device, State.ok, told)
    elif _is_admin(seen.place):
        told = "the driver keeps hardware counters for administrators; this process is one"
        yield Finding("permission", Subject.device, State.ok, told)
    elif kernel is not None and not kernel["kernels"]:
        yield Finding(
            "permission",
            Subject.device,
            State.problem,
            "the driver keeps profiling for administrators, and no kernel was recorded",
            "set NVreg_RestrictProfilingToAdminUsers=0 for the module nvidia, and restart; in a "
            "container add `--cap-add SYS_ADMIN`",
        )
    else:
        told = "hardware counters are for administrators; recordings do not need them"
        yield Finding("permission", Subject.device, State.ok, told)


def _is_admin(place: Place) -> bool:
    try:
        effective = int(place.values("proc/self/status").get("CapEff", ""), 16)
    except ValueError:
        return False
    return bool(effective & _SYS_ADMIN)
