"""Sums the memory that operators allocated and released, by name, source line or module."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.call_tree.parent_array_forests import is_outermost_of_key, subtree_totals
from selftime.analysis.call_tree.self_times import SelfTimes, self_times
from selftime.analysis.memory.block_holders import source_lines_of_stacks
from selftime.analysis.memory.memory_records import memory_records_of_device_type
from selftime.analysis.slice_arguments import arguments_of_slices, parent_of_every_slice
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.timeline.tracks import require_end_after_start
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

_NAME_OF_ROW_OUTSIDE_OPERATORS: Final = "outside operators"

_DEVICE_TYPE_AND_NUMBER_COLUMNS: Final = ("type", "device", "device_type")

_MEMORY_RECORD_COLUMNS: Final = (
    "at",
    "time",
    "bytes",
    "failed",
    "earlier",
    "call_stack",
    "operator",
    *_DEVICE_TYPE_AND_NUMBER_COLUMNS,
)
"""The columns of memory records that the view reads."""


def memory_of_operators(
    trace: Trace, *, by: str, device_type: str, start: int, end: int
) -> pl.DataFrame:
    """Returns the bytes that operators allocated and released, one row per device and group.

    Args:
        trace: The trace.
        by: What to group operators by: name, line or module.
        device_type: The type of the devices, such as CUDA; empty for all.
        start: Only records and calls from this instant on, in ns.
        end: Only those up to this instant, in ns; 0 for all.
    """
    happened = ~pl.col("failed") & ~pl.col("earlier") & (pl.col("bytes") != 0)
    records = memory_records_of_device_type(trace, device_type).select(_MEMORY_RECORD_COLUMNS)
    table = _memory_records_between(records.filter(happened), start, end)
    if not table.height:
        return pl.DataFrame()
    stacked = table.filter(pl.col("call_stack").is_not_null() & pl.lit(by == "line"))
    if stacked.height:
        table = table.filter(~pl.col("at").is_in(stacked["at"].implode()))
    host = self_times(trace)
    named, group = _number_distinct_group_keys(_grouping_columns_of_call_entries(trace, host, by))
    starts = trace.slices["start"].gather(pl.Series(host.id, dtype=pl.UInt32)).to_numpy()
    ran = (starts >= start) & ((starts <= end) if end else True)
    calls = np.bincount(group[ran], minlength=named.height)
    named = named.with_columns(calls=pl.Series(calls, dtype=pl.Int64))
    owner = _call_entry_of_each_memory_record(trace, host, table["operator"])
    owned = table.select(*_DEVICE_TYPE_AND_NUMBER_COLUMNS, "bytes", owner=owner)
    by_device = owned.partition_by("type", "device")
    parts = [_memory_rows_of_device(host, part, named, group) for part in by_device]
    parts += [_memory_rows_by_recorded_stack(one) for one in stacked.partition_by("type", "device")]
    return pl.concat(parts, how="diagonal_relaxed")


def _memory_records_between(records: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """Returns the memory records between two instants (ns), inclusive; all if both are 0."""
    if end:
        require_end_after_start(start, end)
    if start:
        records = records.filter(pl.col("time") >= start)
    return records.filter(pl.col("time") <= end) if end else records


def _grouping_columns_of_call_entries(trace: Trace, host: SelfTimes, by: str) -> pl.DataFrame:
    """Returns each call's name, source line or module, as the option `by` says."""
    ids = pl.Series("id", host.id, dtype=pl.UInt32)
    if by == "name":
        return pl.DataFrame({"name": host.name})
    if by == "line":
        return source_sites_of_slices(trace, ids).select(SOURCE_SITE_COLUMNS)
    module = arguments_of_slices(trace, "op_args", ids, "module")
    return pl.DataFrame({"module": trace.slices["name"].gather(module["module"])})


def _number_distinct_group_keys(key_columns: pl.DataFrame) -> tuple[pl.DataFrame, Ints]:
    """Numbers the distinct rows of a table; returns the distinct rows, and each row's number."""
    which, first = group_and_first_row_of_rows(key_columns)
    distinct = key_columns[pl.Series(first)].cast({pl.Categorical: pl.String})
    rank = distinct.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64) - 1).to_series()
    return distinct.with_columns(group=rank).sort("group"), rank.to_numpy()[which]


def _call_entry_of_each_memory_record(
    trace: Trace, host: SelfTimes, operators: pl.Series
) -> pl.Series:
    """Returns the index in `host` of each memory record's operator or nearest ancestor, or -1.

    NO_SLICE stands for a record without such an operator.
    """
    place = np.full(trace.slices.height, NO_SLICE, np.int64)
    place[host.id] = np.arange(host.id.size)
    parent = parent_of_every_slice(trace)
    asked = operators.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    found = nearest_ancestor(parent, place != NO_SLICE, asked)
    return pl.Series(
        np.where(found == NO_SLICE, NO_SLICE, place[found] if place.size else NO_SLICE)
    )


def _memory_rows_of_device(
    host: SelfTimes, records: pl.DataFrame, group_keys: pl.DataFrame, group: Ints
) -> pl.DataFrame:
    """Returns one device's rows: one per group of operators, one for memory outside operators."""
    counts = _bytes_and_counts_of_memory_records(records)
    owner = records["owner"].to_numpy()
    outer = is_outermost_of_key(host.parent, group)
    columns: dict[str, Any] = {}
    for name, amount in counts.items():
        own = np.zeros(host.id.size, np.int64)
        np.add.at(own, owner[owner != NO_SLICE], amount[owner != NO_SLICE])
        columns[f"self_{name}"] = _sum_amounts_by_group(own, group, group_keys.height)
        total = np.where(outer, subtree_totals(host.parent, own), 0)
        columns[name] = _sum_amounts_by_group(total, group, group_keys.height)
    rows = group_keys.with_columns(**columns).filter(pl.col("records") > 0)
    lost = {name: int(amount[owner == NO_SLICE].sum()) for name, amount in counts.items()}
    if lost["records"]:
        both = {f"{own}{name}": [total] for name, total in lost.items() for own in ("self_", "")}
        rows = pl.concat(
            [rows, pl.DataFrame({"name": [_NAME_OF_ROW_OUTSIDE_OPERATORS], **both})],
            how="diagonal_relaxed",
        )
    return rows.with_columns(
        device_type=pl.lit(records["device_type"][0]), device=pl.lit(records["device"][0])
    )


def _memory_rows_by_recorded_stack(records: pl.DataFrame) -> pl.DataFrame:
    """Returns one device's rows by source line in the memory records' own call stacks."""
    told = records.select(
        "device_type", "device", pl.col("call_stack").cast(pl.String).alias("stack")
    ).with_columns(**_bytes_and_counts_of_memory_records(records))
    sums = [pl.col(name).sum() for name in _bytes_and_counts_of_memory_records(records)]
    each = told.group_by("device_type", "device", "stack", maintain_order=True).agg(sums)
    lines = each.join(
        source_lines_of_stacks(each["stack"]), on="stack", how="left", maintain_order="left"
    )
    itself = pl.col("innermost").fill_null(value=True)
    own = [
        pl.when(itself).then(name).otherwise(0).alias(f"self_{name}")
        for name in _bytes_and_counts_of_memory_records(records)
    ]
    keys = ["device_type", "device", *SOURCE_SITE_COLUMNS]
    return lines.with_columns(own).group_by(keys, maintain_order=True).agg(pl.col(pl.Int64).sum())


def _bytes_and_counts_of_memory_records(records: pl.DataFrame) -> dict[str, Ints]:
    """Returns each memory record's bytes and counts, by the column in which they are summed."""
    size = records["bytes"].to_numpy()
    gains = size > 0
    return {
        "size_increase": size,
        "allocations": gains.astype(np.int64),
        "allocation_size": np.where(gains, size, 0),
        "records": np.ones(size.size, np.int64),
    }


def _sum_amounts_by_group(amounts: Ints, group: Ints, group_count: int) -> Ints:
    found = np.zeros(group_count, np.int64)
    np.add.at(found, group, amounts)
    return found
