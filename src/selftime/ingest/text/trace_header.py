"""Reads a trace's header: its devices, rank, world size, PyTorch version and time origin."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import schema
from selftime.devices import description_row_by_device, is_amd_recording
from selftime.ingest.events.event_types import NO_INT
from selftime.names import parse_rank_number

EARLIEST_EPOCH_TIME_NS: Final = 10**18
"""Smallest number that is taken for a Unix time in ns (September 2001)."""

_HEADER_KEY_BY_DEVICE_COLUMN: Final = {
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
_ROCM_HEADER_KEY_BY_DEVICE_COLUMN: Final = {
    "shared_memory_per_sm": "maxSharedMemoryPerMultiProcessor"
}


def _device_descriptions(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = metadata.get("deviceProperties")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def device_table(metadata: Mapping[str, Any]) -> pl.DataFrame:
    """Returns the table `devices`, with a row for each device in a trace's `deviceProperties`."""
    rows = []
    for number, item in enumerate(_device_descriptions(metadata)):
        values: dict[str, Any] = {
            column: _int_or_none(item.get(key))
            for column, key in _HEADER_KEY_BY_DEVICE_COLUMN.items()
        }
        for column, key in _ROCM_HEADER_KEY_BY_DEVICE_COLUMN.items():
            values[column] = values[column] or _int_or_none(item.get(key))
        values["name"] = str(item.get("name") or "") or None
        rows.append({"id": number, **values})
    return pl.DataFrame(rows, schema=dict(schema.DEVICES.dtypes))


def device_names_in_header(metadata: Mapping[str, Any]) -> set[str]:
    """Returns the names of the devices that a trace's header describes."""
    names = (item.get("name") for item in _device_descriptions(metadata))
    return {name for name in names if isinstance(name, str) and name}


def _int_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def rank_in_header(metadata: Mapping[str, Any]) -> int | None:
    """Returns the rank in a trace's header; None if it is absent or invalid."""
    return _distributed_info_number(metadata, "rank")


def world_size_in_header(metadata: Mapping[str, Any]) -> int | None:
    """Returns the world size in a trace's header; None if it is absent or invalid."""
    return _distributed_info_number(metadata, "world_size") or None


def pytorch_version_in_header(metadata: Mapping[str, Any]) -> str | None:
    """Returns the PyTorch version that selftime writes into a trace's header; None if absent."""
    facts = metadata.get("selftime")
    version = facts.get("torch") if isinstance(facts, dict) else None
    return version if isinstance(version, str) else None


def process_groups_in_header(metadata: Mapping[str, Any]) -> list[set[int]]:
    """Returns a set of ranks for each process group that a trace's header lists."""
    info = metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, dict) else None
    groups = listed if isinstance(listed, list) else []
    rank_lists = [group.get("ranks") for group in groups if isinstance(group, dict)]
    return [
        {rank for rank in map(parse_rank_number, ranks) if rank is not None}
        for ranks in rank_lists
        if isinstance(ranks, list) and ranks
    ]


def _distributed_info_number(metadata: Mapping[str, Any], key: str) -> int | None:
    info = metadata.get("distributedInfo")
    number = info.get(key) if isinstance(info, dict) else None
    return parse_rank_number(number)


def device_table_rows(
    metadata: Mapping[str, Any], device_numbers: NDArray[Any]
) -> NDArray[np.int64]:
    """Returns each device number's row index in the table `devices`; `NO_INT` if it has none."""
    distinct = np.unique(device_numbers[device_numbers != NO_INT])
    described = [_int_or_none(item.get("id")) for item in _device_descriptions(metadata)]
    rows = description_row_by_device(
        distinct.tolist(),
        described,
        is_amd_trace=is_amd_recording(metadata),
        rank=rank_in_header(metadata),
    )
    found = np.full(device_numbers.size, NO_INT, np.int64)
    for number, row in rows.items():
        found[device_numbers == number] = row
    return found


def origin_since_epoch(metadata: Mapping[str, Any], origin: int) -> int | None:
    """Returns the Unix time in ns at which a trace's times are 0; None if unknown.

    `baseTimeNanoseconds` is added if the trace's own times do not count from the epoch.
    """
    base = metadata.get("baseTimeNanoseconds")
    zero = origin + (base if isinstance(base, int) and origin < EARLIEST_EPOCH_TIME_NS else 0)
    return zero if zero >= EARLIEST_EPOCH_TIME_NS else None
