"""Sums memory blocks by where they were allocated and where they were released."""

from typing import Final

import polars as pl

from selftime.analysis.memory.block_grouping import memory_blocks_with_grouping_columns
from selftime.analysis.memory.block_holders import (
    operator_labels_of_memory_records,
    source_sites_of_memory_records,
)
from selftime.analysis.memory.blocks import (
    memory_blocks_of_device_type,
    memory_growth_per_step,
    step_end_times,
)
from selftime.analysis.timeline.tracks import require_end_after_start
from selftime.trace import Trace

_RELEASE_COLUMNS: Final = ("release_operator", "release_file", "release_line", "release_function")


def memory_block_lifetimes(
    trace: Trace, device_type: str, columns: list[str], *, start: int, end: int
) -> pl.DataFrame:
    """Returns what was allocated in the recording, one row for each place of release.

    Args:
        trace: The trace.
        device_type: The type of the devices, such as CUDA; empty for all.
        columns: Columns by which allocations are grouped.
        start: Only blocks allocated from this instant on, in ns.
        end: Only those up to this instant, in ns; 0 for all.
    """
    blocks = memory_blocks_of_device_type(trace, device_type).filter(
        pl.col("allocated").is_not_null() & pl.col("state").is_in(["released", "lives on"])
    )
    if end:
        require_end_after_start(start, end)
        blocks = blocks.filter(pl.col("allocated") <= end)
    blocks = blocks.filter(pl.col("allocated") >= start)
    if not blocks.height:
        return pl.DataFrame()
    told = memory_blocks_with_grouping_columns(trace, blocks, columns)
    released = source_sites_of_memory_records(trace, blocks["release"])
    told = told.with_columns(
        release_operator=operator_labels_of_memory_records(trace, blocks["release"]),
        release_file=released["file"],
        release_line=released["line"],
        release_function=released["function"],
    )
    return _sums_of_places(trace, told, ["device_type", "device", *columns, *_RELEASE_COLUMNS])


def _sums_of_places(trace: Trace, blocks: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Returns the sums of blocks with equal keys that are all released, or all not."""
    lives = pl.col("state") == "lives on"
    blocks = blocks.with_columns(lives=lives, lifetime=pl.col("released") - pl.col("allocated"))
    places = ["lives", *keys]
    group = blocks.select(pl.struct(places).rank("dense").cast(pl.Int64) - 1).to_series()
    growth = memory_growth_per_step(
        blocks, group.to_numpy(), group.n_unique(), step_end_times(trace)
    )
    by_group = pl.DataFrame(
        {"group": range(growth.len()), "growth_per_step": growth.replace(0, None)}
    )
    return (
        blocks.with_columns(group=group)
        .group_by("group", *places)
        .agg(
            bytes=pl.col("size").sum(),
            blocks=pl.len(),
            alive=pl.when(pl.col("lives").first()).then(pl.col("size").sum()),
            median_lifetime=pl.col("lifetime").median().round().cast(pl.Int64),
            longest_lifetime=pl.col("lifetime").max(),
            allocated=pl.col("allocated").min(),
        )
        .join(by_group.cast({"group": pl.Int64}), on="group")
        .sort(
            pl.col("growth_per_step").fill_null(0), "bytes", "group", descending=[True, True, False]
        )
    )
