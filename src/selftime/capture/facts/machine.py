"""What the machine gives this process: devices, cores, rank."""

import os
from pathlib import Path
from typing import Any

import torch

_left: dict[int, tuple[int, int]] = {}
"""The rank and the number of ranks that a process was seen to have."""


def rank_and_world() -> tuple[int | None, int | None]:
    """This process's rank and the number of ranks; None where it is no part of a job.

    A process that has left its group keeps the rank that it had when this was asked before.
    """
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        _left[os.getpid()] = distributed.get_rank(), distributed.get_world_size()
    if os.getpid() in _left:
        return _left[os.getpid()]
    rank, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if rank.isdecimal() and world.isdecimal():
        return int(rank), int(world)
    return None, None


def devices() -> list[dict[str, Any]]:
    """The accelerators that this process can see.

    Names and sizes are null if the program has not touched the devices: asking for them would.
    """
    if torch.cuda.is_available():
        return _devices("cuda", torch.cuda)
    if torch.xpu.is_available():
        return _devices("xpu", torch.xpu)
    if torch.backends.mps.is_available():
        return [{"type": "mps", "index": 0, "name": None, "memory": None}]
    return []


def _devices(kind: str, backend: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for index in range(backend.device_count()):
        name = memory = None
        if backend.is_initialized():
            properties = backend.get_device_properties(index)
            name, memory = properties.name, properties.total_memory
        found.append({"type": kind, "index": index, "name": name, "memory": memory})
    return found


def cores() -> dict[str, Any]:
    """How many cores the machine has, and how many of them this process can really use."""
    logical = os.cpu_count()
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    quota = cpu_quota()
    limits = [limit for limit in (affinity, quota) if limit is not None]
    return {
        "logical": logical,
        "affinity": affinity,
        "quota": quota,
        "load": _load(),
        "effective": min(limits) if limits else None,
    }


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # the system does not tell
        return None


def cpu_quota(root: Path = Path("/")) -> float | None:
    """The container's limit in cores, by control groups of version 2 or 1; None if unlimited."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    quotas = []
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if not controllers:
            quotas += _quotas(root / "sys/fs/cgroup", path, _quota_v2)
        elif "cpu" in controllers.split(","):
            quotas += _quotas(root / "sys/fs/cgroup" / controllers, path, _quota_v1)
            quotas += _quotas(root / "sys/fs/cgroup/cpu", path, _quota_v1)
    return min(quotas, default=None)


def _quotas(mount: Path, path: str, read: Any) -> list[float]:
    """The quotas of a group and of the groups around it: each of them limits."""
    folder = mount / path.lstrip("/")
    found = []
    while True:
        try:
            quota = read(folder)
        except (OSError, ValueError):  # a container sees the end of the path only
            quota = None
        if quota is not None:
            found.append(quota)
        if folder in (mount, folder.parent):
            return found
        folder = folder.parent


def _quota_v2(folder: Path) -> float | None:
    quota, period = (folder / "cpu.max").read_text().split()
    return None if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float | None:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    period = int((folder / "cpu.cfs_period_us").read_text())
    return quota / period if quota > 0 and period > 0 else None
