"""Reads statistics of the devices' memory allocators, and counts this process's page faults."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

if sys.platform != "win32":
    import resource


def device_memory_stats() -> list[dict[str, Any]] | None:
    """Returns each device's numbers of allocations and peak bytes since program start.

    None if there is no CUDA device or the program has not used it: asking would initialize it.
    """
    if not torch.cuda.is_available():
        return None
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch
        return None
    return [_allocator_stats_of_device(index) for index in range(torch.cuda.device_count())]


def _allocator_stats_of_device(index: int) -> dict[str, Any]:
    stats: Mapping[str, Any] = torch.cuda.memory_stats(index)
    return {
        "index": index,
        "retries": stats.get("num_alloc_retries"),
        "failures": stats.get("num_ooms"),
        "allocated_peak": stats.get("allocated_bytes.all.peak"),
        "reserved_peak": stats.get("reserved_bytes.all.peak"),
    }


@dataclass(slots=True)
class PageFaultCounter:
    """Counts page faults and kernel-mode CPU time of this process during one recording."""

    _at_start: tuple[int, int] | None = None
    _during_recording: tuple[int, int] | None = None

    def start_counting(self) -> None:
        self._at_start, self._during_recording = _minor_faults_and_system_time_ns(), None

    def stop_counting(self) -> None:
        now = _minor_faults_and_system_time_ns()
        if now is not None and self._at_start is not None:
            self._during_recording = now[0] - self._at_start[0], now[1] - self._at_start[1]
        self._at_start = None

    def fault_facts(self) -> dict[str, Any]:
        """Returns {name: value}: page faults, page size in bytes, kernel-mode CPU time in ns."""
        faults, system = self._during_recording or (None, None)
        size = None if faults is None else resource.getpagesize()
        return {"page_faults": faults, "page_size": size, "system_ns": system}


def page_fault_count() -> int | None:
    """Returns this process's page faults since its start; None if the system hides the number."""
    used = _minor_faults_and_system_time_ns()
    return None if used is None else used[0]


def page_fault_count_since(before: int | None) -> int | None:
    """Returns the page faults since a call of `page_fault_count()` that returned `before`."""
    now = page_fault_count()
    return None if now is None or before is None else now - before


def _minor_faults_and_system_time_ns() -> tuple[int, int] | None:
    """Returns (page faults without disk access, kernel-mode CPU time in ns); None if unknown."""
    if sys.platform == "win32":
        return None
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt, round(used.ru_stime * 1e9)
