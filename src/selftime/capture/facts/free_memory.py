"""Reads how much memory this process uses, and how much more it may allocate."""

import sys
from pathlib import Path
from typing import Final

from selftime.capture.facts.machine import values_of_cgroups

if sys.platform != "win32":
    import resource

_ROOT: Final = Path("/")


def free_memory_bytes(root: Path = _ROOT) -> int | None:
    """Returns the bytes that this process may still allocate; None if the system hides it.

    It is the least of what the machine has available, what its control groups leave below their
    limits, and what its own limit of the address space leaves.
    """
    numbers = [
        _bytes_in_proc_file(root / "proc/meminfo", "MemAvailable"),
        *values_of_cgroups(root, "memory", _bytes_left_in_cgroup_v2, _bytes_left_in_cgroup_v1),
        _address_space_left_bytes(root),
    ]
    return min((max(0, number) for number in numbers if number is not None), default=None)


def resident_bytes(root: Path = _ROOT) -> int | None:
    """Returns the bytes of memory that this process uses now; None if the system hides it."""
    return _bytes_in_proc_file(root / "proc/self/status", "VmRSS")


def peak_resident_bytes(root: Path = _ROOT) -> int | None:
    """Returns the most memory that this process has used, in bytes; None if the system hides it."""
    return _bytes_in_proc_file(root / "proc/self/status", "VmHWM")


def _bytes_in_proc_file(file: Path, name: str) -> int | None:
    """Returns a number of bytes that a file of Linux gives in lines such as `VmRSS:  120 kB`."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    text = next((line.partition(":")[2] for line in lines if line.startswith(f"{name}:")), "")
    number = text.removesuffix("kB").strip()
    return int(number) << 10 if number.isdecimal() else None


def _address_space_left_bytes(root: Path) -> int | None:
    if sys.platform == "win32":
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _bytes_in_proc_file(root / "proc/self/status", "VmSize")
    return None if limit == resource.RLIM_INFINITY or used is None else limit - used


def _bytes_left_in_cgroup_v2(folder: Path) -> int | None:
    limit = (folder / "memory.max").read_text().strip()
    return None if limit == "max" else int(limit) - _used_bytes(folder, "memory.current")


def _bytes_left_in_cgroup_v1(folder: Path) -> int | None:
    limit = int((folder / "memory.limit_in_bytes").read_text())
    return limit - _used_bytes(folder, "memory.usage_in_bytes")


def _used_bytes(folder: Path, file: str) -> int:
    """Returns the bytes that a control group uses, less the files' pages that can be given up."""
    pages = [
        line.split()[1]
        for line in (folder / "memory.stat").read_text().splitlines()
        if line.startswith("inactive_file ")
    ]
    return int((folder / file).read_text()) - sum(map(int, pages))
