"""Finds GPUs, drivers and containers from files of the system, without importing PyTorch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from selftime.capture.doctor.observations import ExaminedMachine

_PCI_CLASS_PREFIX_OF_DISPLAY_CONTROLLERS: Final = "0x03"
"""Prefix of the PCI class of display controllers, which includes compute GPUs."""

_DEVICE_VISIBILITY_VARIABLES_BY_VENDOR: Final = {
    "NVIDIA": ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    "AMD": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
}
"""Maps each vendor to the environment variables that select which devices a program sees."""

_VALUES_THAT_HIDE_ALL_DEVICES: Final = ("", "-1", "void", "none", "NoDevFiles")
"""Values of `CUDA_VISIBLE_DEVICES` and similar variables that hide all devices."""


@dataclass(frozen=True, slots=True)
class InstalledDevices:
    """The accelerators of one vendor in a machine, and the version of their driver."""

    vendor: str
    driver: str | None
    """Version of the driver, or a word if the version is unknown; None if no driver is loaded."""
    models: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        return ", ".join(self.models) if self.models else f"{self.vendor} device"


def find_installed_devices(machine: ExaminedMachine) -> InstalledDevices | None:
    """Returns the machine's NVIDIA devices, else its AMD devices; None if it has neither."""
    return _find_nvidia_devices(machine) or _find_amd_devices(machine)


def _find_nvidia_devices(machine: ExaminedMachine) -> InstalledDevices | None:
    text = machine.read_text("proc/driver/nvidia/version")
    nodes = [node for node in machine.find_files("dev/nvidia[0-9]*") if node.name[6:].isdecimal()]
    if text is not None or nodes:
        models = (
            machine.read_named_values(str(file.relative_to(machine.root))).get(
                "Model", "NVIDIA device"
            )
            for file in machine.find_files("proc/driver/nvidia/gpus/*/information")
        )
        return InstalledDevices(
            "NVIDIA", _parse_driver_version(text or "") or "present", tuple(models)
        )
    if machine.file_exists("dev/dxg") and machine.find_files("usr/lib/wsl/lib/libcuda.so*"):
        return InstalledDevices("NVIDIA", "that of Windows")
    return InstalledDevices("NVIDIA", None) if _is_vendor_on_pci_bus(machine, "0x10de") else None


def _parse_driver_version(text: str) -> str | None:
    """Returns the version, such as `550.54.15`, in a line that begins with `NVRM version`."""
    first = text.partition("\n")[0].split()
    return next((word for word in first if word[0].isdigit() and "." in word), None)


def _find_amd_devices(machine: ExaminedMachine) -> InstalledDevices | None:
    """Returns the AMD GPUs that the driver lists as compute nodes; None if there are none."""
    nodes = machine.find_files("sys/class/kfd/kfd/topology/nodes/*/gpu_id")
    gpus = [node for node in nodes if _integer_in_file_or_zero(node) > 0]
    if not gpus:
        return None
    return InstalledDevices("AMD", (machine.read_text("sys/module/amdgpu/version") or "present"))


def _integer_in_file_or_zero(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # only the driver may read it
        return 0


def _is_vendor_on_pci_bus(machine: ExaminedMachine, vendor: str) -> bool:
    return any(
        (machine.read_text(str(file.relative_to(machine.root))) or "").strip() == vendor
        and (
            machine.read_text(str(file.with_name("class").relative_to(machine.root))) or ""
        ).startswith(_PCI_CLASS_PREFIX_OF_DISPLAY_CONTROLLERS)
        for file in machine.find_files("sys/bus/pci/devices/*/vendor")
    )


def setting_hiding_devices(machine: ExaminedMachine, vendor: str) -> str | None:
    """Returns the setting `NAME=VALUE` that hides all devices of a vendor; None without one."""
    for name in _DEVICE_VISIBILITY_VARIABLES_BY_VENDOR.get(vendor, ()):
        value = machine.environment.get(name)
        # An empty CUDA_VISIBLE_DEVICES hides all; an empty NVIDIA_VISIBLE_DEVICES hides none.
        if (
            value is not None
            and value.strip() in _VALUES_THAT_HIDE_ALL_DEVICES[(name == "NVIDIA_VISIBLE_DEVICES") :]
        ):
            return f"{name}={value}"
    return None


def is_in_wsl(machine: ExaminedMachine) -> bool:
    return "microsoft" in (machine.read_text("proc/version") or "").lower()


def container_kind(machine: ExaminedMachine) -> str | None:
    """Returns the kind of container around this process, such as `docker`; None without one."""
    for name, maker in (("run/.containerenv", "podman"), (".dockerenv", "docker")):
        if machine.file_exists(name):
            return maker
    text = machine.read_text("run/systemd/container")
    if text:
        return text.strip()
    groups = machine.read_text("proc/1/cgroup") or ""
    kinds = ("kubepods", "docker", "containerd", "lxc", "libpod")
    kind = next((name for name in kinds if name in groups), None)
    if kind == "kubepods" or "KUBERNETES_SERVICE_HOST" in machine.environment:
        return "kubernetes"
    return kind or machine.environment.get("container")
