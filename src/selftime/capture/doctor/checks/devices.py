"""Checks whether the machine has a GPU or other accelerator that PyTorch can use."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from selftime.capture.doctor.checks.pytorch import platform_of_build
from selftime.capture.doctor.hardware import (
    InstalledDevices,
    container_kind,
    find_installed_devices,
    setting_hiding_devices,
)
from selftime.capture.doctor.observations import (
    DoctorFinding,
    ExaminedMachine,
    FindingState,
    FindingSubject,
    MachineObservations,
)

_DEVICE_ERRORS_AND_REMEDIES: Final = (
    (("driver on your system is too old", "driver version is insufficient"),
     "update the driver, or install a PyTorch that was built for an older CUDA"),
    (("802", "system not yet initialized"),
     "start the service nvidia-fabricmanager, which devices behind an NVSwitch need"),
    (("804", "forward compatibility"),
     "the container's CUDA is newer than the driver allows: update it, or take an older container"),
    (("out of memory",), "another process holds all of the device's memory; see `nvidia-smi`"),
    (("exclusive", "busy or unavailable"),
     "another process uses the device exclusively; see `nvidia-smi -q -d COMPUTE`"),
    (("no kernel image",),
     "this PyTorch has no code for the device: install one that was built for a newer CUDA"),
    (("libcuda.so", "Found no NVIDIA driver"),
     "install the driver; start a container with access to it"),
)  # fmt: skip
"""PyTorch's error messages about unusable devices (parts of the text), and what the user can do."""

_DEVICE_FILES_THAT_MUST_BE_OPENABLE: Final = ("dev/kfd", "dev/nvidiactl", "dev/nvidia0")
"""Device files that a program must be allowed to open, as paths relative to `/`."""

_GPU_PLATFORM_BY_VENDOR: Final = {"NVIDIA": "CUDA", "AMD": "ROCm"}


def check_devices(observations: MachineObservations) -> Iterator[DoctorFinding]:
    build = observations.host.answer("build")
    hardware = find_installed_devices(observations.machine)
    if build is None:
        if hardware is not None:
            yield _finding_on_device_use(
                FindingState.unknown, f"{hardware.description}; without PyTorch it cannot be tested"
            )
        return
    kind = platform_of_build(build).partition(" ")[0]
    devices = observations.devices.answer("devices")
    why = observations.devices.error("devices")
    if devices is not None and devices["count"]:
        names = devices["names"] or [devices["kind"]]
        yield _finding_on_device_use(FindingState.ok, _device_names_with_counts(names))
    elif hardware is not None and kind != _GPU_PLATFORM_BY_VENDOR[hardware.vendor]:
        yield _wrong_torch_build_finding(hardware, build)
    elif hardware is not None:
        yield _unusable_device_finding(
            observations.machine, hardware, (devices or {}).get("error") or why
        )
    elif devices is None and why is not None:
        yield _finding_on_device_use(
            FindingState.problem,
            f"PyTorch did not list its devices: {why}",
            "check whether the driver responds (`nvidia-smi`, `rocminfo`), and restart the machine "
            "if it does not",
        )
    else:
        yield _finding_on_device_use(
            FindingState.ok, "none: a recording holds what runs on the CPU"
        )


def _finding_on_device_use(
    state: FindingState, seen: str, cure: str | None = None
) -> DoctorFinding:
    return DoctorFinding("device", FindingSubject.device, state, seen, cure)


def _device_names_with_counts(names: list[str]) -> str:
    """Returns the distinct device names as text, each with its count if there are several."""
    counts = {name: names.count(name) for name in names}
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())


def _wrong_torch_build_finding(
    hardware: InstalledDevices, build: Mapping[str, Any]
) -> DoctorFinding:
    wanted = _GPU_PLATFORM_BY_VENDOR[hardware.vendor]
    platform = platform_of_build(build)
    seen = f"{hardware.description} is present, but this PyTorch is built for {platform}"
    if hardware.vendor == "AMD":  # the driver lists many devices that ROCm does not support
        cure = f"to use it, install a PyTorch for {wanted}, if that supports the device"
        return _finding_on_device_use(FindingState.warning, seen, cure)
    return _finding_on_device_use(
        FindingState.problem,
        seen,
        f"install a PyTorch for {wanted} (see https://pytorch.org/get-started/locally); what is "
        "recorded now is the CPU alone",
    )


def _unusable_device_finding(
    machine: ExaminedMachine, hardware: InstalledDevices, error: str | None
) -> DoctorFinding:
    hidden = setting_hiding_devices(machine, hardware.vendor)
    if hidden is not None:
        return _finding_on_device_use(
            FindingState.warning,
            f"{hardware.description} is present, but {hidden} hides it from programs",
            f"unset {hidden.partition('=')[0]} to record it",
        )
    if hardware.driver is None:
        return _finding_on_device_use(
            FindingState.problem,
            f"{hardware.description} is present, but its driver is not loaded",
            "install the driver, and restart; after a kernel update, rebuild its module",
        )
    seen = (
        f"{hardware.description} is present (driver {hardware.driver}), but PyTorch cannot use it"
    )
    return _finding_on_device_use(
        FindingState.problem,
        f"{seen}: {error or 'it gives no reason'}",
        _device_error_remedy(machine, error),
    )


def _device_error_remedy(machine: ExaminedMachine, error: str | None) -> str:
    closed = [
        name
        for name in _DEVICE_FILES_THAT_MUST_BE_OPENABLE
        if machine.file_exists(name) and not machine.is_file_accessible(name)
    ]
    if closed:
        return (
            f"this user may not open /{closed[0]}: add them to the group that owns it (`render` or "
            "`video` on most systems), and log in again"
        )
    for signs, cure in _DEVICE_ERRORS_AND_REMEDIES:
        if error is not None and any(sign in error for sign in signs):
            return cure
    if container_kind(machine) is not None:
        return "start the container with the device, such as by `docker run --gpus all`"
    return "check whether the driver responds (`nvidia-smi`, `rocminfo`) for the same user"
