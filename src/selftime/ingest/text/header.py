"""Read a trace's header: its devices, rank, world size and time origin."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import schema
from selftime.devices import description_rows, is_amd
from selftime.ingest.events.event import NO_INT
from selftime.names import process_number

FIRST_EPOCH: Final = 10**18
"""September 2001 in ns since the Unix epoch; a smaller number is not a time since the epoch."""

_KEYS: Final = {
    "index": "id",
    "name": "name",
    "memory": "totalGlobalMem",
    "compute_major": "computeMajor",
    "compute_minor": "computeMinor",
    "multiprocessors": "numSms",
    "warp_size": "warpSize",
    "threads_per_sm": "maxThreadsPerMultiprocessor",
    "threads_per_block": "maxThreadsPerBlock",
    "registers_per_sm": "regsPerMultiprocessor",
    "shared_memory_per_sm": "sharedMemPerMultiprocessor",
}
_ROCM_KEYS: Final = {"shared_memory_per_sm": "maxSharedMemoryPerMultiProcessor"}


def _descriptions(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = metadata.get("deviceProperties")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def device_table(metadata: Mapping[str, Any]) -> pl.DataFrame:
    """Returns the table of devices that the header describes."""
    rows = []
    for number, item in enumerate(_descriptions(metadata)):
        values: dict[str, Any] = {column: _value(item.get(key)) for column, key in _KEYS.items()}
        for column, key in _ROCM_KEYS.items():
            values[column] = values[column] or _value(item.get(key))
        values["name"] = str(item.get("name") or "") or None
        rows.append({"id": number, **values})
    return pl.DataFrame(rows, schema=dict(schema.DEVICES.dtypes))


def _value(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def rank_of(metadata: Mapping[str, Any]) -> int | None:
    """Returns the rank in the header; None if it is absent or invalid."""
    return _job_number(metadata, "rank")


def world_size_of(metadata: Mapping[str, Any]) -> int | None:
    """Returns the number of processes in the header; None if it is absent or invalid."""
    return _job_number(metadata, "world_size") or None


def version_of(metadata: Mapping[str, Any]) -> str | None:
    """Returns the PyTorch version of the recording; only selftime's recordings have it."""
    facts = metadata.get("selftime")
    told = facts.get("torch") if isinstance(facts, dict) else None
    return told if isinstance(told, str) else None


def process_groups_of(metadata: Mapping[str, Any]) -> list[set[int]]:
    """Returns the ranks of each process group that the header lists."""
    info = metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, dict) else None
    groups = listed if isinstance(listed, list) else []
    told = [group.get("ranks") for group in groups if isinstance(group, dict)]
    return [
        {rank for rank in map(process_number, ranks) if rank is not None}
        for ranks in told
        if isinstance(ranks, list) and ranks
    ]


def _job_number(metadata: Mapping[str, Any], key: str) -> int | None:
    info = metadata.get("distributedInfo")
    told = info.get(key) if isinstance(info, dict) else None
    return process_number(told)


def device_row_numbers(metadata: Mapping[str, Any], numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Returns for each device number its row in `device_table`; `NO_INT` if it has none."""
    known = np.unique(numbers[numbers != NO_INT])
    described = [_value(item.get("id")) for item in _descriptions(metadata)]
    rows = description_rows(known.tolist(), described, amd=is_amd(metadata), rank=rank_of(metadata))
    found = np.full(numbers.size, NO_INT, np.int64)
    for number, row in rows.items():
        found[numbers == number] = row
    return found


def epoch_origin(metadata: Mapping[str, Any], origin: int) -> int | None:
    """Returns the trace's time origin in ns since the Unix epoch; None if unknown.

    `baseTimeNanoseconds` is added if the trace's own times do not count from the epoch.
    """
    base = metadata.get("baseTimeNanoseconds")
    zero = origin + (base if isinstance(base, int) and origin < FIRST_EPOCH else 0)
    return zero if zero >= FIRST_EPOCH else None
