"""Finds when most memory of a device is allocated, and what allocated it."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.memory.block_grouping import memory_blocks_with_grouping_columns
from selftime.analysis.memory.blocks import (
    STATE_BEFORE_RECORDING,
    TIME_OF_NEVER_RELEASED,
    is_block_alive_after_record,
    is_block_alive_at_step_end,
    memory_blocks_of_device_type,
    memory_growth_per_step,
    step_end_times,
)
from selftime.analysis.memory.kept_records import totals_at_instant
from selftime.analysis.memory.memory_records import memory_records_with_totals
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.analysis.timeline.tracks import require_end_after_start
from selftime.errors import UsageError
from selftime.trace import Trace

_UNACCOUNTED_MEMORY_CATEGORY: Final = "unaccounted"

_UNKNOWN_MEMORY_CATEGORY: Final = "unknown"


def memory_at_peaks(
    trace: Trace, device_type: str, search_range: tuple[int, int], columns: list[str]
) -> pl.DataFrame:
    """Returns what occupies each device's memory when most is allocated, by groups of blocks.

    Args:
        trace: The trace.
        device_type: The type of the devices, such as CUDA; empty for all.
        search_range: The first and last instant (ns) of the search for the peak.
        columns: Columns by which memory blocks are grouped into rows.
    """
    every = memory_blocks_of_device_type(trace, device_type)
    parts = memory_records_with_totals(trace, device_type).partition_by(
        "type", "device", maintain_order=True
    )
    rows = [
        _peak_memory_rows_of_device(trace, every, find_memory_peak(part, search_range), columns)
        for part in parts
    ]
    return pl.concat(rows, how="diagonal_relaxed") if rows else pl.DataFrame()


def peak_search_range(trace: Trace, *, start: int, end: int, step: int, at: int) -> tuple[int, int]:
    """Returns the first and last instant (ns) of the time range that is searched for the peak.

    It is from `start` to `end`, or `step`, or the instant `at`, each 0 or -1 if not given, or else
    the whole recording.
    """
    if _is_peak_limited_to_time_range(start, end, step, at):
        return start, end
    return _time_range_of_peak_search(trace, step, at)


@dataclass(frozen=True, slots=True)
class MemoryPeakOfDevice:
    """When most memory of a device is allocated: time in ns, memory record, allocated bytes."""

    device_type: str | None
    type: int | None
    device: int | None
    time: int
    record: int
    allocated: int


def _is_peak_limited_to_time_range(start: int, end: int, step: int, at: int) -> bool:
    """Returns whether the search for the peak is limited to the time from `start` to `end`."""
    if not start and not end:
        return False
    if step >= 0 or at >= 0:
        raise UsageError("`start` and `end` cannot be given together with `step` or `at`")
    require_end_after_start(start, end)
    return True


def _time_range_of_peak_search(trace: Trace, step: int, at: int) -> tuple[int, int]:
    """Returns the first and last instant (ns) of the time range that is searched for the peak."""
    if step >= 0 and at >= 0:
        raise UsageError("`step` and `at` cannot be given together; write only one")
    if step < 0:
        return (at, at) if at >= 0 else (-1, TIME_OF_NEVER_RELEASED)
    found = find_steps(trace).filter(pl.col("number") == step)
    if not found.height:
        raise UsageError(
            f"`step` is `{step}`, but there is no such step; the view `steps` lists all"
        )
    return int(found["start"][0]), int(found["end"][0])


def find_memory_peak(totals: pl.DataFrame, search_range: tuple[int, int]) -> MemoryPeakOfDevice:
    """Returns when one device has most memory allocated in a time range (both ends included)."""
    begin, end = search_range
    opening = totals_at_instant(totals, begin)
    inside = totals.filter((pl.col("time") > begin) & (pl.col("time") <= end))
    both = pl.concat([opening, inside], how="vertical_relaxed")
    best = both.row(
        int(np.argmax(both["allocated"].to_numpy())), named=True
    )  # the first of equal ones
    where = {name: best[name] for name in ("device_type", "type", "device", "time", "allocated")}
    return MemoryPeakOfDevice(record=best["at"], **where)


def _peak_memory_rows_of_device(
    trace: Trace, blocks: pl.DataFrame, peak: MemoryPeakOfDevice, grouping_columns: list[str]
) -> pl.DataFrame:
    """Returns the rows of one device: bytes allocated at its peak, by group of memory blocks.

    One row is for the memory that no recorded allocation explains.
    """
    mine = blocks.filter(
        pl.col("type").eq_missing(peak.type) & pl.col("device").eq_missing(peak.device)
    ).with_columns(alive=is_block_alive_after_record(peak.record).fill_null(value=False))
    known = _rows_of_known_memory_blocks(trace, mine, grouping_columns)
    rest = peak.allocated - int(known["bytes"].sum())
    rows = [known, _row_of_unknown_memory(mine, peak, rest)] if rest else [known]
    return (
        pl.concat(rows, how="diagonal_relaxed")
        .sort("bytes", descending=True, maintain_order=True)
        .with_columns(
            share=pl.col("bytes") / peak.allocated if peak.allocated else pl.lit(None),
            device_type=pl.lit(peak.device_type),
            device=pl.lit(peak.device),
            time=pl.lit(peak.time),
        )
    )


def _rows_of_known_memory_blocks(
    trace: Trace, blocks: pl.DataFrame, grouping_columns: list[str]
) -> pl.DataFrame:
    """Returns one row for each group of memory blocks: bytes at the peak, and growth per step.

    Groups that have no block at the peak and do not grow are left out.
    """
    ends = step_end_times(trace)
    told = blocks.filter(
        pl.col("alive") | pl.Series(is_block_alive_at_step_end(blocks, ends), dtype=pl.Boolean)
    )
    told = memory_blocks_with_grouping_columns(trace, told, grouping_columns)
    group = told.select(pl.struct(grouping_columns).rank("dense").cast(pl.Int64) - 1).to_series()
    grown = memory_growth_per_step(told, group.to_numpy(), group.n_unique(), ends)
    alive = pl.when("alive")
    by_group = pl.DataFrame({"group": range(grown.len()), "growth_per_step": grown})
    return (
        told.with_columns(group=group)
        .group_by("group", *grouping_columns)
        .agg(
            bytes=alive.then("size").otherwise(0).sum(),
            blocks=pl.col("alive").sum().cast(pl.Int64),
            allocated=alive.then("allocated").min(),
            released=pl.when(alive.then("gone").max() < TIME_OF_NEVER_RELEASED).then(
                alive.then("until").max()
            ),
        )
        .join(by_group.cast({"group": pl.Int64}), on="group")
        .filter((pl.col("blocks") > 0) | (pl.col("growth_per_step") > 0))
        .sort("group")
        .drop("group")
    )


def _row_of_unknown_memory(
    blocks: pl.DataFrame, peak: MemoryPeakOfDevice, unknown_bytes: int
) -> pl.DataFrame:
    """Returns one row for the allocated memory that no recorded allocation explains.

    The number of its blocks, and the last release, are known if their releases add up to it.
    """
    later = blocks.filter(
        (pl.col("state") == STATE_BEFORE_RECORDING) & (pl.col("gone") > peak.record)
    )
    whole = int(later["size"].sum()) == unknown_bytes
    addressed = not blocks.height or blocks["address"].is_not_null().any()
    category = STATE_BEFORE_RECORDING if addressed else _UNKNOWN_MEMORY_CATEGORY
    return pl.DataFrame(
        {
            "bytes": [unknown_bytes],
            "category": [category if unknown_bytes > 0 else _UNACCOUNTED_MEMORY_CATEGORY],
            "blocks": [later.height if whole else None],
            "released": [later["until"].max() if whole else None],
        }
    )
