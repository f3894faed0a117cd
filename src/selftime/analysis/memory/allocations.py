"""Records of memory by device, and the totals that they add up to.

Allocators of devices write their totals beside each record: they hold what existed before the
recording, too. Totals of the host hold what the recording saw only, and traces of 2021 have none:
there records are added up, from a baseline that is unknown and, as no total is below 0, at least
what is released beyond what was allocated.
"""

import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.devices import DEVICE_TYPES, HOST_TYPES
from selftime.errors import UsageError
from selftime.trace import Trace


def type_name(number: int) -> str:
    """The name of a device type, known or not.

    >>> type_name(6), type_name(77)
    ('HIP', 'device type 77')
    """
    return DEVICE_TYPES.get(number, f"device type {number}")


def records(trace: Trace, device: str = "") -> pl.DataFrame:
    """Allocations and releases in order of time, one row each, as `trace.memory` has them.

    Columns: those of `memory` with the device type's name in `device_type`, its number in `type`,
    `at`, the row of `memory`, and `earlier`, whether it is from before the recording: then it tells
    of a block that was there, and nothing of when. Records without bytes tell totals only. `device`
    keeps devices whose type has that name; a name of no type is an error.
    """
    table = _every(trace)
    if not device:
        return table
    named = _named(trace)
    known = {name.lower() for name in [*DEVICE_TYPES.values(), *named.values()]}
    if device.lower() not in known:
        there = ", ".join(sorted(named.values())) or "no memory events"
        raise UsageError(f"`device` is `{device}`, which is no type of device; here are {there}")
    return table.filter(pl.col("device_type").str.to_lowercase() == device.lower())


@cached_per_trace
def _every(trace: Trace) -> pl.DataFrame:
    table = trace.memory.with_row_index("at").rename({"device_type": "type"})
    kind = pl.col("type").replace_strict(_named(trace), default=None, return_dtype=pl.String)
    size = pl.col("bytes").fill_null(0)
    return table.with_columns(device_type=kind, bytes=size, earlier=pl.col("time") < 0)


def _named(trace: Trace) -> dict[int, str]:
    """The names of the types of devices that there are records of."""
    types = trace.memory["device_type"].drop_nulls().unique().to_list()
    return {number: type_name(number) for number in types}


def totals(trace: Trace, device: str = "") -> pl.DataFrame:
    """The records of one type of device, or of all, `with_totals`."""
    return with_totals(records(trace, device)) if device else _every_total(trace)


@cached_per_trace
def _every_total(trace: Trace) -> pl.DataFrame:
    return with_totals(_every(trace))


def with_totals(table: pl.DataFrame) -> pl.DataFrame:
    """The records that took place, with the totals after each, in order of device and time.

    Accelerators stand before the host.

    `allocated` is never null; `reserved` is null where no allocator reserves. `how` is `recorded`
    or `summed`, from the baseline that the module tells of.
    """
    happened = table.filter(~pl.col("failed") & ~pl.col("earlier"))
    last = pl.col("type").is_in(HOST_TYPES).fill_null(value=True)
    ordered = happened.sort(last, "type", "device", maintain_order=True, nulls_last=True)
    parts = ordered.partition_by("type", "device", maintain_order=True)
    summed = [_summed(part) for part in parts]
    return pl.concat(summed) if summed else _summed(happened)


def _summed(part: pl.DataFrame) -> pl.DataFrame:
    """The totals of one device."""
    on_host = pl.col("type").is_in(HOST_TYPES).fill_null(value=False)
    reserves = ~on_host & (pl.col("reserved") >= 0) & (pl.col("reserved") > 0).any()
    part = part.with_columns(
        allocated=pl.when(~on_host & (pl.col("allocated") >= 0)).then("allocated"),
        reserved=pl.when(reserves).then("reserved"),
    )
    if part.height and not part["allocated"].null_count():
        return part.with_columns(how=pl.lit("recorded"))
    running = pl.col("bytes").cum_sum()
    first_told = (pl.col("allocated") - running).drop_nulls().first().fill_null(0)
    least = pl.max_horizontal(-running.min(), 0)
    base = pl.max_horizontal(first_told, least)
    return part.with_columns(allocated=running + base, how=pl.lit("summed"))
