"""Records of memory allocation by device, and the running totals of allocated memory.

Allocators of devices write their totals with each record, including memory from before the
recording. Totals of the host only include what the recording saw, and traces of 2021 have none.
There the records are summed from an unknown baseline: at least the bytes released beyond those
allocated, because no total is below 0, and all that was released at addresses without an earlier
record.
"""

import polars as pl

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.devices import DEVICE_TYPE_NAMES, HOST_DEVICE_TYPES
from selftime.errors import UsageError
from selftime.trace import Trace


def device_type_name(type_number: int) -> str:
    """Returns a device type's name from its number; `device type N` for an unknown number N.

    >>> device_type_name(6), device_type_name(77)
    ('HIP', 'device type 77')
    """
    return DEVICE_TYPE_NAMES.get(type_number, f"device type {type_number}")


def memory_records_of_device_type(trace: Trace, device_type: str = "") -> pl.DataFrame:
    """Returns allocations and releases on one type of device, or on all, in order of time.

    Columns: those of `memory` with the device type's name in `device_type`, its number in `type`,
    `at`, the row of `memory`, and `earlier`, whether the block is older than the recording: then
    its time of allocation is unknown. Records without bytes only have totals. `device_type` selects
    devices of the type with that name; an unknown name is an error.
    """
    table = _memory_records_of_all_devices(trace)
    if not device_type:
        return table
    named = _recorded_device_type_names(trace)
    known = {name.lower() for name in [*DEVICE_TYPE_NAMES.values(), *named.values()]}
    if device_type.lower() not in known:
        there = ", ".join(sorted(named.values())) or "no memory events"
        raise UsageError(
            f"`device` is `{device_type}`, which is not a device type in this trace; "
            f"there are {there}"
        )
    return table.filter(pl.col("device_type").str.to_lowercase() == device_type.lower())


@cached_per_trace
def _memory_records_of_all_devices(trace: Trace) -> pl.DataFrame:
    table = trace.memory.with_row_index("at").rename({"device_type": "type"})
    kind = pl.col("type").replace_strict(
        _recorded_device_type_names(trace), default=None, return_dtype=pl.String
    )
    size = pl.col("bytes").fill_null(0)
    return table.with_columns(device_type=kind, bytes=size, earlier=pl.col("time") < 0)


def _recorded_device_type_names(trace: Trace) -> dict[int, str]:
    """Returns the names of the device types that have memory records."""
    types = trace.memory["device_type"].drop_nulls().unique().to_list()
    return {number: device_type_name(number) for number in types}


def memory_records_with_totals(trace: Trace, device_type: str = "") -> pl.DataFrame:
    """Returns memory records with total bytes after each, for one type of device or for all."""
    return (
        with_memory_totals(memory_records_of_device_type(trace, device_type))
        if device_type
        else _records_with_totals_of_all_devices(trace)
    )


@cached_per_trace
def _records_with_totals_of_all_devices(trace: Trace) -> pl.DataFrame:
    return with_memory_totals(_memory_records_of_all_devices(trace))


def with_memory_totals(records: pl.DataFrame) -> pl.DataFrame:
    """Returns allocations and releases with the total bytes after each, by device and time.

    Accelerators come before the host.

    `allocated` is never null; `reserved` is null where no allocator reserves memory. `how` is
    `recorded`, or `summed` from the baseline described in the module's docstring.
    """
    happened = records.filter(~pl.col("failed") & ~pl.col("earlier"))
    last = pl.col("type").is_in(HOST_DEVICE_TYPES).fill_null(value=True)
    ordered = happened.sort(last, "type", "device", maintain_order=True, nulls_last=True)
    parts = ordered.partition_by("type", "device", maintain_order=True)
    summed = [_records_with_totals_of_device(part) for part in parts]
    return pl.concat(summed) if summed else _records_with_totals_of_device(happened)


def _records_with_totals_of_device(records: pl.DataFrame) -> pl.DataFrame:
    """Adds the total memory of one device after each record, as recorded or else summed."""
    on_host = pl.col("type").is_in(HOST_DEVICE_TYPES).fill_null(value=False)
    reserves = ~on_host & (pl.col("reserved") >= 0) & (pl.col("reserved") > 0).any()
    records = records.with_columns(
        allocated=pl.when(~on_host & (pl.col("allocated") >= 0)).then("allocated"),
        reserved=pl.when(reserves).then("reserved"),
    )
    if records.height and not records["allocated"].null_count():
        return records.with_columns(how=pl.lit("recorded"))
    running = pl.col("bytes").cum_sum()
    first_told = (pl.col("allocated") - running).drop_nulls().first().fill_null(0)
    known_before = -records.filter(
        (pl.col("bytes") < 0)
        & pl.col("address").is_not_null()
        & pl.col("address").is_first_distinct()
    )["bytes"].sum()
    least = pl.max_horizontal(-running.min(), 0, known_before)
    base = pl.max_horizontal(first_told, least)
    return records.with_columns(allocated=running + base, how=pl.lit("summed"))
