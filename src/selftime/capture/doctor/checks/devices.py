"""Is there a device, does PyTorch see it, and is its work recorded?"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from selftime.capture.doctor.checks.pytorch import built_for
from selftime.capture.doctor.hardware import Hardware, hidden_by, in_container, look
from selftime.capture.doctor.observations import Finding, Place, Seen, State, Subject

_CURES: Final = (
    (("driver on your system is too old", "driver version is insufficient"),
     "update the driver, or install a PyTorch that was built for an older CUDA"),
    (("802", "system not yet initialized"),
     "start the service nvidia-fabricmanager, which devices behind an NVSwitch need"),
    (("804", "forward compatibility"),
     "the container's CUDA is newer than the driver allows: update it, or take an older container"),
    (("out of memory",), "another process holds all of the device's memory; see `nvidia-smi`"),
    (("exclusive", "busy or unavailable"),
     "another process has the device to itself; see `nvidia-smi -q -d COMPUTE`"),
    (("no kernel image",),
     "this PyTorch has no code for the device: install one that was built for a newer CUDA"),
    (("libcuda.so", "Found no NVIDIA driver"), "install the driver; in a container, let it in"),
)  # fmt: skip
"""What PyTorch says when it cannot use a device, and what helps."""

_NODES: Final = ("dev/kfd", "dev/nvidiactl", "dev/nvidia0")
"""Files of devices that a program must be allowed to open."""

_BUILDS: Final = {"NVIDIA": "CUDA", "AMD": "ROCm"}


def check(seen: Seen) -> Iterator[Finding]:
    build = seen.host.answer("build")
    hardware = look(seen.place)
    if build is None:
        if hardware is not None:
            yield _finding(State.unknown, f"{hardware.named}; without PyTorch nothing can be tried")
        return
    kind = built_for(build).partition(" ")[0]
    devices = seen.devices.answer("devices")
    why = seen.devices.why("devices")
    if devices is not None and devices["count"]:
        names = devices["names"] or [devices["kind"]]
        yield _finding(State.ok, _counted(names))
    elif hardware is not None and kind != _BUILDS[hardware.vendor]:
        yield _wrong_build(hardware, build)
    elif hardware is not None:
        yield _unusable(seen.place, hardware, (devices or {}).get("error") or why)
    elif devices is None and why is not None:
        yield _finding(
            State.problem,
            f"PyTorch was asked for its devices: {why}",
            "see whether the driver answers (`nvidia-smi`, `rocminfo`), and restart the machine if "
            "it does not",
        )
    else:
        yield _finding(State.ok, "none: a recording holds what runs on the CPU")


def _finding(state: State, told: str, cure: str | None = None) -> Finding:
    return Finding("device", Subject.device, state, told, cure)


def _counted(names: list[str]) -> str:
    """Names with how often each occurs, in their order."""
    counts = {name: names.count(name) for name in names}
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())


def _wrong_build(hardware: Hardware, build: Mapping[str, Any]) -> Finding:
    wanted = _BUILDS[hardware.vendor]
    told = f"{hardware.named} is here, and this PyTorch is built for {built_for(build)}"
    if hardware.vendor == "AMD":  # the driver shows many that ROCm does not support
        cure = f"to use it, install a PyTorch for {wanted}, if that supports the device"
        return _finding(State.warning, told, cure)
    return _finding(
        State.problem,
        told,
        f"install a PyTorch for {wanted} (see https://pytorch.org/get-started/locally); what is "
        "recorded now is the CPU alone",
    )


def _unusable(place: Place, hardware: Hardware, error: str | None) -> Finding:
    hidden = hidden_by(place, hardware.vendor)
    if hidden is not None:
        return _finding(
            State.warning,
            f"{hardware.named} is here, and {hidden} hides it from programs",
            f"unset {hidden.partition('=')[0]} to record it",
        )
    if hardware.driver is None:
        return _finding(
            State.problem,
            f"{hardware.named} is here, and its driver is not loaded",
            "install the driver, and restart; after an update of the kernel, build its module anew",
        )
    told = f"{hardware.named} is here (driver {hardware.driver}), and PyTorch cannot use it"
    return _finding(State.problem, f"{told}: {error or 'it does not say why'}", _cure(place, error))


def _cure(place: Place, error: str | None) -> str:
    closed = [name for name in _NODES if place.is_there(name) and not place.may_use(name)]
    if closed:
        return (
            f"this user may not open /{closed[0]}: add them to the group that owns it (`render` or "
            "`video` on most systems), and log in anew"
        )
    for signs, cure in _CURES:
        if error is not None and any(sign in error for sign in signs):
            return cure
    if in_container(place) is not None:
        return "start the container with the device: `docker run --gpus all`, or its like"
    return "see whether the driver answers (`nvidia-smi`, `rocminfo`) for the same user"
