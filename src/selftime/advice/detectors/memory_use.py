"""How full the devices' memory becomes, by the trace's totals or else by what stands beside it."""

from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.memory.allocations import totals
from selftime.devices import HOST_TYPES
from selftime.trace import Trace

NEARLY_FULL: Final = 0.9
"""Of a device's memory: above it a batch that is a tenth larger does not fit, as the TensorBoard
plugin of PyTorch has it."""


def holders(trace: Trace, device: int) -> pl.DataFrame:
    """The rows of `memory_peak` of one accelerator, largest first; none if not recorded."""
    return _every(trace).filter((pl.col("device") == device) & (pl.col("device_type") != "CPU"))


@cached_per_trace
def _every(trace: Trace) -> pl.DataFrame:
    return trace.view("memory_peak")


@dataclass(frozen=True, slots=True)
class Fullness:
    """The memory of one device when most of it is in use; bytes, None where not known."""

    device: int
    capacity: int | None
    allocated: int | None
    """In tensors at the peak."""
    reserved: int | None
    """Taken from the device by PyTorch at the most."""
    unused: int | None
    """Of what is reserved then, at least so much is in no tensor."""
    retries: int | None = None
    """How often an allocation failed until unused memory had been given back."""

    def share(self, part: int | None) -> float | None:
        """What a part is of the device's memory."""
        return None if part is None or not self.capacity else part / self.capacity

    @property
    def is_nearly_full(self) -> bool:
        share = self.share(self.allocated)
        return share is not None and share > NEARLY_FULL


@cached_per_trace
def fullness(trace: Trace) -> tuple[Fullness, ...]:
    """Every device of which anything is known, in order."""
    summed = {one.device: one for one in _by_totals(trace)}
    told = {one.device: one for one in _by_facts(trace)}
    return tuple(
        _joined(summed.get(number), told.get(number)) for number in sorted({*summed, *told})
    )


def _joined(totals: Fullness | None, told: Fullness | None) -> Fullness:
    """The totals, which are of one instant, with the count that only the program has."""
    if totals is None or told is None:
        [one] = (found for found in (totals, told) if found is not None)
        return one
    known = totals if totals.reserved is not None else told
    return Fullness(
        known.device, totals.capacity, totals.allocated, known.reserved, known.unused, told.retries
    )


def _by_totals(trace: Trace) -> list[Fullness]:
    table = totals(trace).filter(~pl.col("type").is_in(HOST_TYPES))
    found = []
    for part in table.partition_by("type", "device", maintain_order=True):
        number = part["device"][0]
        fullest = part.filter(pl.col("reserved") == pl.col("reserved").max())
        spare = fullest.select((pl.col("reserved") - pl.col("allocated")).min()).item()
        allocated: int = max(part["allocated"].to_list())
        reserved = part["reserved"].drop_nulls().to_list()
        top = max(reserved, default=None)
        found.append(Fullness(number, _capacity(trace, number), allocated, top, spare))
    return found


def _capacity(trace: Trace, number: int) -> int | None:
    told = trace.devices.filter(pl.col("index") == number)["memory"].drop_nulls()
    return int(told[0]) if told.len() else None


def _by_facts(trace: Trace) -> list[Fullness]:
    told = trace.facts.get("allocator")
    devices = told.get("devices") if isinstance(told, dict) else None
    rows = devices if isinstance(devices, list) else []
    return [
        _told(trace, row) for row in rows if isinstance(row, dict) and _whole(row, "index") >= 0
    ]


def _told(trace: Trace, row: dict[str, Any]) -> Fullness:
    index = _whole(row, "index")
    allocated, reserved = _known(row, "allocated_peak"), _known(row, "reserved_peak")
    unused = None if allocated is None or reserved is None else max(reserved - allocated, 0)
    retries = _known(row, "retries")
    return Fullness(index, _capacity(trace, index), allocated, reserved, unused, retries)


def _whole(row: dict[str, Any], key: str) -> int:
    value = row.get(key)
    return value if isinstance(value, int) else -1


def _known(row: dict[str, Any], key: str) -> int | None:
    value = _whole(row, key)
    return value if value >= 0 else None
