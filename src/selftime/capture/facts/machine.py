"""Reads which accelerators and CPU cores this process can use, and its rank in a job."""

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import torch

_Number = TypeVar("_Number", int, float)

_CPUINFO_NAME_KEYS: Final = ("model name", "Model", "cpu model", "cpu")
"""Keys of lines of /proc/cpuinfo with the processor's name, as different architectures have
them."""

_last_rank_and_world: dict[int, tuple[int, int]] = {}
"""Maps process id to (rank, world size) when torch.distributed was last initialized."""


def rank_and_world() -> tuple[int | None, int | None]:
    """Returns (rank, world size) of this process; (None, None) outside of a distributed job.

    After the process group is destroyed, the values of the last call before that are returned.
    """
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        _last_rank_and_world[os.getpid()] = distributed.get_rank(), distributed.get_world_size()
    if os.getpid() in _last_rank_and_world:
        return _last_rank_and_world[os.getpid()]
    rank, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if rank.isdecimal() and world.isdecimal():
        return int(rank), int(world)
    return None, None


def visible_devices() -> list[dict[str, Any]]:
    """Returns the accelerators that this process can see, with their memory in bytes.

    `name` and `memory` are None if the program has not used the devices: asking for them would
    initialize them.
    """
    if torch.cuda.is_available():
        return _devices_of_backend("cuda", torch.cuda)
    if torch.xpu.is_available():
        return _devices_of_backend("xpu", torch.xpu)
    if torch.backends.mps.is_available():
        return [{"type": "mps", "index": 0, "name": None, "memory": None}]
    return []


def _devices_of_backend(device_type: str, backend: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for index in range(backend.device_count()):
        name = memory = None
        if backend.is_initialized():
            properties = backend.get_device_properties(index)
            name, memory = properties.name, properties.total_memory
        found.append({"type": device_type, "index": index, "name": name, "memory": memory})
    return found


def usable_core_counts() -> dict[str, Any]:
    """Returns counts by name: CPU cores of the machine, and cores that this process may use."""
    logical = os.cpu_count()
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    quota = cgroup_cpu_quota()
    limits = [limit for limit in (affinity, quota) if limit is not None]
    return {
        "logical": logical,
        "affinity": affinity,
        "quota": quota,
        "load": _system_load_average_of_last_minute(),
        "effective": min(limits) if limits else None,
    }


def processor_name(root: Path = Path("/")) -> str | None:
    """Returns the name of the CPU, such as `AMD EPYC 7B13`; None if the system does not tell it."""
    try:
        text = (root / "proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:  # not Linux
        return platform.processor() or None
    pairs = (line.partition(":") for line in text.splitlines())
    told = {key.strip(): " ".join(value.split()) for key, _, value in pairs}
    found = next((told[key] for key in _CPUINFO_NAME_KEYS if told.get(key)), None)
    if found is None and told.get("CPU implementer"):  # Linux on Arm names numbers alone
        found = f"Arm {told['CPU implementer']}, part {told.get('CPU part', 'unknown')}"
    return found or platform.processor() or None


def _system_load_average_of_last_minute() -> float | None:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # the system does not report it
        return None


def cgroup_cpu_quota(root: Path = Path("/")) -> float | None:
    """Returns the control group's CPU limit in cores (cgroup v2 or v1); None if unlimited."""
    return min(
        values_of_cgroups(root, "cpu", _cgroup_v2_cpu_quota, _cgroup_v1_cpu_quota), default=None
    )


def values_of_cgroups(
    root: Path,
    controller: str,
    read_v2: Callable[[Path], _Number | None],
    read_v1: Callable[[Path], _Number | None],
) -> list[_Number]:
    """Returns what is read of each control group that this process is in, for one controller.

    Args:
        root: The root of the file system.
        controller: The controller's name in cgroup v1.
        read_v2: Reads the folder of a group of cgroup v2; None if the group has no limit.
        read_v1: The same for cgroup v1.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if not controllers:
            found += _values_of_group_and_parents(root / "sys/fs/cgroup", path, read_v2)
        elif controller in controllers.split(","):
            for mount in dict.fromkeys((controllers, controller)):
                folder = root / "sys/fs/cgroup" / mount
                found += _values_of_group_and_parents(folder, path, read_v1)
    return found


def _values_of_group_and_parents(
    mount: Path, path: str, read: Callable[[Path], _Number | None]
) -> list[_Number]:
    """Returns what is read of a control group and of its parents, whose limits apply, too."""
    folder = mount / path.lstrip("/")
    found = []
    while True:
        try:
            value = read(folder)
        except (OSError, ValueError):  # a container sees only the last part of the path
            value = None
        if value is not None:
            found.append(value)
        if folder in (mount, folder.parent):
            return found
        folder = folder.parent


def _cgroup_v2_cpu_quota(folder: Path) -> float | None:
    quota, period = (folder / "cpu.max").read_text().split()
    return None if quota == "max" else int(quota) / int(period)


def _cgroup_v1_cpu_quota(folder: Path) -> float | None:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    period = int((folder / "cpu.cfs_period_us").read_text())
    return quota / period if quota > 0 and period > 0 else None
