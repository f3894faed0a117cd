"""Which devices the system shows, whatever PyTorch makes of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from selftime.capture.doctor.observations import Place

_DISPLAY: Final = "0x03"
"""How the PCI class of a device that draws, or that computes as one, begins."""

_HIDING: Final = {
    "NVIDIA": ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    "AMD": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
}
"""Variables by which a program sees fewer devices than there are."""

_NONE: Final = ("", "-1", "void", "none", "NoDevFiles")
"""Values by which it sees none."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """Devices of one vendor."""

    vendor: str
    driver: str | None
    """The driver's version, or a word for it; None if there is hardware and no driver."""
    models: tuple[str, ...] = ()

    @property
    def named(self) -> str:
        return ", ".join(self.models) if self.models else f"{self.vendor} device"


def look(place: Place) -> Hardware | None:
    """What a program could use, if PyTorch were built for it."""
    return _nvidia(place) or _amd(place)


def _nvidia(place: Place) -> Hardware | None:
    told = place.text("proc/driver/nvidia/version")
    nodes = [node for node in place.listed("dev/nvidia[0-9]*") if node.name[6:].isdecimal()]
    if told is not None or nodes:
        models = (
            place.values(str(file.relative_to(place.root))).get("Model", "NVIDIA device")
            for file in place.listed("proc/driver/nvidia/gpus/*/information")
        )
        return Hardware("NVIDIA", _version(told or "") or "present", tuple(models))
    if place.is_there("dev/dxg") and place.listed("usr/lib/wsl/lib/libcuda.so*"):
        return Hardware("NVIDIA", "that of Windows")
    return Hardware("NVIDIA", None) if _on_the_bus(place, "0x10de") else None


def _version(told: str) -> str | None:
    """`NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5 …`: the number."""
    first = told.partition("\n")[0].split()
    return next((word for word in first if word[0].isdigit() and "." in word), None)


def _amd(place: Place) -> Hardware | None:
    """Compute nodes of AMD's driver; those of processors have the number 0."""
    nodes = place.listed("sys/class/kfd/kfd/topology/nodes/*/gpu_id")
    gpus = [node for node in nodes if _number(node) > 0]
    if not gpus:
        return None
    return Hardware("AMD", (place.text("sys/module/amdgpu/version") or "present"))


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # the driver shows it to nobody else
        return 0


def _on_the_bus(place: Place, vendor: str) -> bool:
    return any(
        (place.text(str(file.relative_to(place.root))) or "").strip() == vendor
        and (place.text(str(file.with_name("class").relative_to(place.root))) or "").startswith(
            _DISPLAY
        )
        for file in place.listed("sys/bus/pci/devices/*/vendor")
    )


def hidden_by(place: Place, vendor: str) -> str | None:
    """The setting that hides all devices from a program, if there is one."""
    for name in _HIDING.get(vendor, ()):
        value = place.environment.get(name)
        # An empty list of CUDA hides all; the container's variable hides none where it is empty.
        if value is not None and value.strip() in _NONE[(name == "NVIDIA_VISIBLE_DEVICES") :]:
            return f"{name}={value}"
    return None


def in_wsl(place: Place) -> bool:
    return "microsoft" in (place.text("proc/version") or "").lower()


def in_container(place: Place) -> str | None:
    """What kind of container this is, as far as its files tell."""
    for name, maker in (("run/.containerenv", "podman"), (".dockerenv", "docker")):
        if place.is_there(name):
            return maker
    told = place.text("run/systemd/container")
    if told:
        return told.strip()
    groups = place.text("proc/1/cgroup") or ""
    kinds = ("kubepods", "docker", "containerd", "lxc", "libpod")
    kind = next((name for name in kinds if name in groups), None)
    if kind == "kubepods" or "KUBERNETES_SERVICE_HOST" in place.environment:
        return "kubernetes"
    return kind or place.environment.get("container")
