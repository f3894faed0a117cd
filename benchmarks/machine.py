"""What the figures were measured on, and with which versions; nothing that tells whose it is."""

import contextlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

__all__ = ["described"]

PACKAGES: Final = ("torch", "polars", "numpy", "msgspec", "isal")


def described() -> dict[str, Any]:
    """Processor, cores that may be used, memory, system; versions; the load of the last minute."""
    return {
        "processor": _line("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(_cores()),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1),
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _cores() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _line(path: str, name: str) -> str:
    with contextlib.suppress(OSError):
        for line in Path(path).read_text("utf-8").splitlines():
            if line.startswith(name):
                return line.partition(":")[2].strip()
    return ""


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _commit() -> str:
    """The commit that is checked out, with a mark if what is measured differs from it."""
    command = ["git", "describe", "--always", "--dirty=, changed", "--exclude=*"]
    done = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"
