"""What a trace's header tells: its devices, its rank, its zero of time."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import schema
from selftime.devices import describe, is_amd
from selftime.ingest.events.event import NO_INT
from selftime.names import process_number

FIRST_EPOCH: Final = 10**18
"""A time from 2001 on, in ns since the epoch; anything smaller is no such time."""

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
    """The devices that the header describes."""
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
    """The rank that the header tells; None if that is no number of a process."""
    return _of_job(metadata, "rank")


def world_size_of(metadata: Mapping[str, Any]) -> int | None:
    """The number of processes that the header tells; None if there cannot be so many."""
    return _of_job(metadata, "world_size") or None


def version_of(metadata: Mapping[str, Any]) -> str | None:
    """The version of PyTorch that recorded it, which only recordings by selftime tell."""
    facts = metadata.get("selftime")
    told = facts.get("torch") if isinstance(facts, dict) else None
    return told if isinstance(told, str) else None


def groups_of(metadata: Mapping[str, Any]) -> list[set[int]]:
    """The ranks of each process group that the header lists."""
    info = metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, dict) else None
    groups = listed if isinstance(listed, list) else []
    told = [group.get("ranks") for group in groups if isinstance(group, dict)]
    return [
        {rank for rank in map(process_number, ranks) if rank is not None}
        for ranks in told
        if isinstance(ranks, list) and ranks
    ]


def _of_job(metadata: Mapping[str, Any], key: str) -> int | None:
    info = metadata.get("distributedInfo")
    told = info.get(key) if isinstance(info, dict) else None
    return process_number(told)


def device_rows(metadata: Mapping[str, Any], numbers: NDArray[Any]) -> NDArray[np.int64]:
    """For each device number: the row of `device_table` that describes it, else `NO_INT`."""
    known = np.unique(numbers[numbers != NO_INT])
    described = [_value(item.get("id")) for item in _descriptions(metadata)]
    rows = describe(known.tolist(), described, amd=is_amd(metadata), rank=rank_of(metadata))
    found = np.full(numbers.size, NO_INT, np.int64)
    for number, row in rows.items():
        found[numbers == number] = row
    return found


def epoch_origin(metadata: Mapping[str, Any], origin: int) -> int | None:
    """The trace's zero in ns since the epoch; None if unknown.

    `baseTimeNanoseconds` is added to times that do not count from the epoch themselves.
    """
    base = metadata.get("baseTimeNanoseconds")
    zero = origin + (base if isinstance(base, int) and origin < FIRST_EPOCH else 0)
    return zero if zero >= FIRST_EPOCH else None
