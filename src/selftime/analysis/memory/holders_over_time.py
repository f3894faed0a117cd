"""Splits the allocated memory of a device over time by what allocated it.

A block exists from the record of its allocation to that of its release, as at the peak. What no
recorded allocation explains is a group of its own, so that the groups of an instant add up to the
total there.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.memory.block_grouping import memory_blocks_with_grouping_columns
from selftime.analysis.memory.blocks import STATE_BEFORE_RECORDING, memory_blocks_of_device_type
from selftime.analysis.memory.kept_records import (
    downsample_memory_records,
    memory_records_in_time_range,
)
from selftime.analysis.memory.memory_records import memory_records_with_totals
from selftime.trace import Trace

HOLDER_OF_ONE_GROUP: Final = "group"
"""The holder of rows whose grouping columns say what allocated the memory."""
HOLDER_OF_OTHER_GROUPS: Final = "others"
_HOLDER_OF_CONTRADICTIONS: Final = "unaccounted"
_HOLDER_WITHOUT_ADDRESSES: Final = "unknown"


def memory_holders_over_time(
    trace: Trace,
    device_type: str,
    columns: list[str],
    *,
    time_range: tuple[int, int],
    max_records: int,
    max_groups: int,
) -> pl.DataFrame:
    """Returns the bytes of each group of memory blocks, at each instant at which they change.

    Args:
        trace: The trace.
        device_type: The type of the devices, such as CUDA; empty for all.
        columns: Columns by which memory blocks are grouped.
        time_range: The first and last instant in ns; 0 and 0 for the whole recording.
        max_records: At most so many instants of a device, as `downsample_memory_records` keeps.
        max_groups: Only so many groups of a device stand alone, those with the highest peaks.
    """
    blocks = memory_blocks_of_device_type(trace, device_type)
    rows = []
    for every in memory_records_with_totals(trace, device_type).partition_by(
        "type", "device", maintain_order=True
    ):
        kept = downsample_memory_records(
            memory_records_in_time_range(every, *time_range), max_records
        )
        changes = _changes_of_groups(trace, _blocks_of_device(blocks, kept), kept, columns)
        changes = _merge_small_groups(changes, columns, max_groups)
        rows.append(_totals_of_groups(changes, kept, columns))
    return pl.concat(rows, how="diagonal_relaxed") if rows else pl.DataFrame()


def _blocks_of_device(blocks: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """Returns one device's blocks that exist after at least one of the kept records.

    They have the places among these of the first at which they exist, and of the first at which
    they do not.
    """
    kind, number = kept.row(0, named=True)["type"], kept.row(0, named=True)["device"]
    mine = blocks.filter(
        pl.col("type").eq_missing(kind)
        & pl.col("device").eq_missing(number)
        & pl.col("allocation").is_not_null()
    )
    rows = kept["at"].cast(pl.Int64).to_numpy()
    first = np.searchsorted(rows, mine["allocation"].cast(pl.Int64).to_numpy())
    first[mine["allocated"].is_null().to_numpy()] = 0
    gone = np.searchsorted(rows, mine["gone"].to_numpy())
    return mine.with_columns(first=first, after=gone).filter(pl.col("first") < pl.col("after"))


def _changes_of_groups(
    trace: Trace, blocks: pl.DataFrame, kept: pl.DataFrame, columns: list[str]
) -> pl.DataFrame:
    """Returns by how many bytes each group changes, by place among the kept records."""
    told = memory_blocks_with_grouping_columns(trace, blocks, columns)
    keys = told.select(*columns, holder=pl.lit(HOLDER_OF_ONE_GROUP))
    if "category" in columns:
        earlier = pl.col("category") == STATE_BEFORE_RECORDING
        keys = keys.with_columns(
            holder=pl.when(earlier).then(pl.lit(STATE_BEFORE_RECORDING)).otherwise("holder")
        )
    gains = keys.with_columns(place=told["first"], change=told["size"])
    losses = keys.with_columns(place=told["after"], change=-told["size"])
    known = pl.concat([gains, losses]).filter(pl.col("place") < kept.height)
    rest = _changes_of_unexplained_memory(known, blocks, kept)
    if "category" in columns:
        rest = rest.with_columns(category="holder")
    return pl.concat([known, rest], how="diagonal_relaxed")


def _changes_of_unexplained_memory(
    known: pl.DataFrame, blocks: pl.DataFrame, kept: pl.DataFrame
) -> pl.DataFrame:
    """Returns the changes of what the total of each kept record has beyond the known blocks."""
    explained = np.zeros(kept.height, np.int64)
    np.add.at(explained, known["place"].to_numpy(), known["change"].to_numpy())
    rest = kept["allocated"].to_numpy() - np.cumsum(explained)
    change = np.diff(rest, prepend=0)
    place = np.flatnonzero(change)
    holder = STATE_BEFORE_RECORDING
    if rest.min(initial=0) < 0:
        holder = _HOLDER_OF_CONTRADICTIONS
    elif not blocks.height and kept["address"].null_count() == kept.height:
        holder = _HOLDER_WITHOUT_ADDRESSES
    return pl.DataFrame({"holder": [holder] * place.size, "place": place, "change": change[place]})


def _merge_small_groups(changes: pl.DataFrame, columns: list[str], max_groups: int) -> pl.DataFrame:
    """Returns the changes with all but the groups of highest peaks merged into one.

    They have the group's number: the highest peak first, then what is merged, then what is older
    than the recording or unexplained.
    """
    keys = ["holder", *columns]
    peaks = (
        changes.group_by(*keys, "place")
        .agg(pl.col("change").sum())
        .sort("place")
        .with_columns(bytes=pl.col("change").cum_sum().over(keys))
        .group_by(keys)
        .agg(pl.col("bytes").max())
        .sort("bytes", *keys, descending=[True] + [False] * len(keys), nulls_last=True)
    )
    alone = pl.col("holder") == HOLDER_OF_ONE_GROUP
    place = alone.cum_sum().cast(pl.Int64)
    is_merged = alone & (place > max_groups) & (max_groups > 0)
    number = pl.when("merged").then(max_groups).when(alone).then(place - 1)
    ranked = (
        peaks.with_columns(merged=is_merged)
        .with_columns(group=number.otherwise((~alone).cum_sum().cast(pl.Int64) + peaks.height))
        .with_columns(pl.col("group").rank("dense").cast(pl.Int64) - 1)
        .drop("bytes")
    )
    found = changes.join(ranked, on=keys, nulls_equal=True)
    return found.with_columns(
        pl.when("merged").then(pl.lit(HOLDER_OF_OTHER_GROUPS)).otherwise("holder").alias("holder"),
        *(pl.when(~pl.col("merged")).then(name).alias(name) for name in columns),
    ).drop("merged")


def _totals_of_groups(
    changes: pl.DataFrame, kept: pl.DataFrame, columns: list[str]
) -> pl.DataFrame:
    """Returns each group's bytes at each kept record at which they change, group by group."""
    keys = ["group", "holder", *columns]
    device = kept.row(0, named=True)
    found = (
        changes.group_by(*keys, "place")
        .agg(pl.col("change").sum())
        .filter(pl.col("change") != 0)
        .sort("group", "place")
        .with_columns(bytes=pl.col("change").cum_sum().over("group"))
    )
    return found.with_columns(
        time=kept["time"].gather(found["place"]),
        device_type=pl.lit(device["device_type"]),
        device=pl.lit(device["device"]),
    )
