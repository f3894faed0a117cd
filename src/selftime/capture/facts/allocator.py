"""What allocators did beside the trace: those of devices so far, the system's in a recording."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

if sys.platform != "win32":
    import resource


def devices() -> list[dict[str, Any]] | None:
    """Counts and peaks of each device's allocator since the program began; None if it has none.

    A device that the program has not touched is not asked: asking would touch it.
    """
    if not torch.cuda.is_available():
        return None
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch
        return None
    return [_device(index) for index in range(torch.cuda.device_count())]


def _device(index: int) -> dict[str, Any]:
    told: Mapping[str, Any] = torch.cuda.memory_stats(index)
    return {
        "index": index,
        "retries": told.get("num_alloc_retries"),
        "failures": told.get("num_ooms"),
        "allocated_peak": told.get("allocated_bytes.all.peak"),
        "reserved_peak": told.get("reserved_bytes.all.peak"),
    }


@dataclass(slots=True)
class Paging:
    """Pages that the system gave this process while a recording ran, and time in the system."""

    _begun: tuple[int, int] | None = None
    _spent: tuple[int, int] | None = None

    def begin(self) -> None:
        self._begun, self._spent = _usage(), None

    def end(self) -> None:
        now = _usage()
        if now is not None and self._begun is not None:
            self._spent = now[0] - self._begun[0], now[1] - self._begun[1]
        self._begun = None

    def facts(self) -> dict[str, Any]:
        """Pages given (`page_faults`), their size in bytes, and CPU time in the system, in ns."""
        faults, system = self._spent or (None, None)
        size = None if faults is None else resource.getpagesize()
        return {"page_faults": faults, "page_size": size, "system_ns": system}


def page_faults() -> int | None:
    """Pages that the system gave this process so far; None where it does not tell."""
    used = _usage()
    return None if used is None else used[0]


def faults_since(before: int | None) -> int | None:
    """Pages given since `page_faults()` was `before`."""
    now = page_faults()
    return None if now is None or before is None else now - before


def _usage() -> tuple[int, int] | None:
    """Page faults without a disk, and ns of the CPU in the system; None where it does not tell."""
    if sys.platform == "win32":
        return None
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt, round(used.ru_stime * 1e9)
