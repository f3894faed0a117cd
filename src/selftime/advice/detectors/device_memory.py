"""Finds each device's peak memory use, from memory events or from the recorder's metadata."""

from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.analysis.memory.memory_records import memory_records_with_totals
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.devices import HOST_DEVICE_TYPES
from selftime.trace import Trace

NEARLY_FULL_MEMORY_SHARE: Final = 0.9
"""Share of a device's memory in use above which it is nearly full: a tenth more would not fit."""


def peak_memory_holders(trace: Trace, device: int) -> pl.DataFrame:
    """Returns what held memory at a device's peak, largest first: rows of view `memory_peak`."""
    return _memory_peak_table(trace).filter(
        (pl.col("device") == device) & (pl.col("device_type") != "CPU")
    )


@cached_per_trace
def _memory_peak_table(trace: Trace) -> pl.DataFrame:
    """Returns the table of the view `memory_peak` for all devices."""
    return trace.view("memory_peak")


@dataclass(frozen=True, slots=True)
class DeviceMemoryPeak:
    """One device's memory at its peak, in bytes; None for numbers that were not recorded."""

    device: int
    capacity_bytes: int | None
    allocated_bytes: int | None
    """Bytes in tensors at the peak; None if not recorded."""
    reserved_bytes: int | None
    """Largest number of bytes that PyTorch's allocator reserved on the device; None if not
    recorded."""
    unused_bytes: int | None
    """Smallest number of reserved bytes that were in no tensor; None if not recorded."""
    allocation_retries: int | None = None
    """Number of allocations that succeeded only after cached memory was freed; None if not
    recorded."""

    def share_of_capacity(self, bytes_used: int | None) -> float | None:
        """Returns `bytes_used` as a share of the device's total memory; None if either is None."""
        return (
            None
            if bytes_used is None or not self.capacity_bytes
            else bytes_used / self.capacity_bytes
        )

    @property
    def is_nearly_full(self) -> bool:
        """Returns whether tensors at the peak fill more than 90 % of the device's memory."""
        share = self.share_of_capacity(self.allocated_bytes)
        return share is not None and share > NEARLY_FULL_MEMORY_SHARE


@cached_per_trace
def device_memory_peaks(trace: Trace) -> tuple[DeviceMemoryPeak, ...]:
    """Returns the peak memory of each device with recorded memory, sorted by device number."""
    summed = {one.device: one for one in _peaks_from_memory_events(trace)}
    told = {one.device: one for one in _peaks_from_recorder_facts(trace)}
    return tuple(
        _peak_with_recorded_retries(summed.get(number), told.get(number))
        for number in sorted({*summed, *told})
    )


def _peak_with_recorded_retries(
    totals: DeviceMemoryPeak | None, recorded: DeviceMemoryPeak | None
) -> DeviceMemoryPeak:
    """Returns one device's peak, merged from memory events and the recorder's metadata."""
    if totals is None or recorded is None:
        [one] = (found for found in (totals, recorded) if found is not None)
        return one
    known = totals if totals.reserved_bytes is not None else recorded
    return DeviceMemoryPeak(
        known.device,
        totals.capacity_bytes,
        totals.allocated_bytes,
        known.reserved_bytes,
        known.unused_bytes,
        recorded.allocation_retries,
    )


def _peaks_from_memory_events(trace: Trace) -> list[DeviceMemoryPeak]:
    """Returns the peak memory of each device, from the memory events of the trace."""
    table = memory_records_with_totals(trace).filter(~pl.col("type").is_in(HOST_DEVICE_TYPES))
    found = []
    for part in table.partition_by("type", "device", maintain_order=True):
        number = part["device"][0]
        fullest = part.filter(pl.col("reserved") == pl.col("reserved").max())
        spare = fullest.select((pl.col("reserved") - pl.col("allocated")).min()).item()
        allocated: int = max(part["allocated"].to_list())
        reserved = part["reserved"].drop_nulls().to_list()
        top = max(reserved, default=None)
        found.append(
            DeviceMemoryPeak(number, _device_capacity_bytes(trace, number), allocated, top, spare)
        )
    return found


def _device_capacity_bytes(trace: Trace, number: int) -> int | None:
    """Returns a device's total memory in bytes; None if the trace does not describe it."""
    told = trace.devices.filter(pl.col("index") == number)["memory"].drop_nulls()
    return int(told[0]) if told.len() else None


def _peaks_from_recorder_facts(trace: Trace) -> list[DeviceMemoryPeak]:
    """Returns the peak memory of each device, from the recorder's metadata."""
    told = trace.facts.get("allocator")
    devices = told.get("devices") if isinstance(told, dict) else None
    rows = devices if isinstance(devices, list) else []
    return [
        _peak_from_allocator_facts(trace, row)
        for row in rows
        if isinstance(row, dict) and _integer_or_minus_one(row, "index") >= 0
    ]


def _peak_from_allocator_facts(trace: Trace, device_facts: dict[str, Any]) -> DeviceMemoryPeak:
    """Returns the peak memory of one device, from the allocator's counters in the metadata."""
    index = _integer_or_minus_one(device_facts, "index")
    allocated, reserved = (
        _count_or_none(device_facts, "allocated_peak"),
        _count_or_none(device_facts, "reserved_peak"),
    )
    unused = None if allocated is None or reserved is None else max(reserved - allocated, 0)
    retries = _count_or_none(device_facts, "retries")
    return DeviceMemoryPeak(
        index, _device_capacity_bytes(trace, index), allocated, reserved, unused, retries
    )


def _integer_or_minus_one(row: dict[str, Any], key: str) -> int:
    """Returns the integer value of `row[key]`; -1 if the row has none."""
    value = row.get(key)
    return value if isinstance(value, int) else -1


def _count_or_none(row: dict[str, Any], key: str) -> int | None:
    """Returns the integer value of `row[key]`; None if it is missing or negative."""
    value = _integer_or_minus_one(row, key)
    return value if value >= 0 else None
