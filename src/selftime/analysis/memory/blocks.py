"""Pairs each allocation of memory with its release, and finds growth of memory over steps.

An allocation and the next record of its address are one block if that record releases as many
bytes. A release with no earlier record of its address ends a block from before the recording. An
allocation with no later record of its address is still alive at the end of the recording. Other
records, because records are missing or hold no address, are unpaired. An allocator's snapshot also
has blocks from before the recording that were never released, with the stack of their allocation
and without its time.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.memory.memory_records import memory_records_of_device_type
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.array_types import Ints
from selftime.trace import Trace

STATE_BEFORE_RECORDING: Final = "before the recording"
"""State of a block that was allocated before the recording."""
MEMORY_BLOCK_STATES: Final = ("released", "lives on", STATE_BEFORE_RECORDING, "unpaired", "failed")
"""The possible final states of a memory block; `failed` marks an allocation that failed."""
TIME_OF_NEVER_RELEASED: Final = (1 << 63) - 1
"""Time in ns, later than every instant, for the end of a block that stays alive."""

_DEVICE_AND_ADDRESS_COLUMNS: Final = ("type", "device", "address")
"""Columns that identify a memory address: device type, device number, address."""


def memory_blocks_of_device_type(trace: Trace, device_type: str = "") -> pl.DataFrame:
    """Returns the memory blocks on one type of device; on all devices if the type is empty."""
    return (
        memory_blocks_from_records(memory_records_of_device_type(trace, device_type))
        if device_type
        else _memory_blocks_of_all_devices(trace)
    )


@cached_per_trace
def _memory_blocks_of_all_devices(trace: Trace) -> pl.DataFrame:
    return memory_blocks_from_records(memory_records_of_device_type(trace))


_PAIRED_RECORD_COLUMNS: Final = (
    "at",
    "time",
    "bytes",
    "failed",
    "earlier",
    "device_type",
    *_DEVICE_AND_ADDRESS_COLUMNS,
)


def memory_blocks_from_records(records: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each memory block, in order of the block's first record.

    Columns: device_type, type, device, address, size (bytes), allocated and released (ns; null
    where unknown), allocation and release (rows of `memory`; null where unknown), until and gone
    (the instant and the row of `memory` at which it ceases to exist; its own if it has no address),
    state (one of `MEMORY_BLOCK_STATES`), at (its first record).
    """
    sized = records.select(_PAIRED_RECORD_COLUMNS).filter(pl.col("bytes") != 0)
    happened = sized.filter(~pl.col("failed"))
    known = happened.filter(pl.col("address").is_not_null()).sort(
        *_DEVICE_AND_ADDRESS_COLUMNS, "at", nulls_last=True, maintain_order=True
    )
    paired = _paired_memory_records(known)
    lost = happened.filter(pl.col("address").is_null()).with_columns(
        state=pl.lit("unpaired"), partner=None, until="time", gone="at"
    )
    failed = sized.filter("failed").with_columns(
        state=pl.lit("failed"), partner=None, until="time", gone="at"
    )
    every = pl.concat([paired, lost, failed], how="vertical_relaxed")
    gains = (pl.col("bytes") > 0) | pl.col("failed")
    released = records.select(partner="at", partner_time="time")
    earlier = gains & pl.col("earlier")
    return (
        every.join(released, on="partner", how="left")
        .select(
            "device_type",
            "type",
            "device",
            "address",
            "at",
            state=pl.when(earlier).then(pl.lit(STATE_BEFORE_RECORDING)).otherwise("state"),
            size=pl.col("bytes").abs(),
            allocated=pl.when(gains & ~earlier).then("time"),
            released=pl.when(gains).then("partner_time").otherwise("time"),
            allocation=pl.when(gains).then("at"),
            release=pl.when(gains).then("partner").otherwise("at"),
            until=pl.when(gains).then("until").otherwise("time").fill_null(TIME_OF_NEVER_RELEASED),
            gone=pl.when(gains)
            .then("gone")
            .otherwise("at")
            .cast(pl.Int64)
            .fill_null(TIME_OF_NEVER_RELEASED),
        )
        .sort("at")
    )


def _paired_memory_records(addressed_records: pl.DataFrame) -> pl.DataFrame:
    """Returns memory records; column `partner` is the row of the release of each allocation."""

    def has_address_of_shifted_row(step: int) -> pl.Expr:
        return pl.all_horizontal(
            pl.col(name).eq_missing(pl.col(name).shift(step))
            for name in _DEVICE_AND_ADDRESS_COLUMNS
        )

    gains = pl.col("bytes") > 0
    marked = addressed_records.with_columns(
        first=~has_address_of_shifted_row(1).fill_null(value=False) | (pl.int_range(pl.len()) == 0),
        final=~has_address_of_shifted_row(-1).fill_null(value=False)
        | (pl.int_range(pl.len()) == pl.len() - 1),
        next_at=pl.col("at").shift(-1),
        next_time=pl.col("time").shift(-1),
    ).with_columns(ends=gains & ~pl.col("final") & (pl.col("bytes").shift(-1) == -pl.col("bytes")))
    state = (
        pl.when("ends")
        .then(pl.lit("released"))
        .when(gains & pl.col("final"))
        .then(pl.lit("lives on"))
        .when(~gains & pl.col("first"))
        .then(pl.lit(STATE_BEFORE_RECORDING))
        .otherwise(pl.lit("unpaired"))
    )
    consumed = pl.col("ends").shift(1, fill_value=False)
    return (
        marked.with_columns(
            state=state,
            partner=pl.when("ends").then("next_at"),
            until=pl.when(~pl.col("final")).then("next_time"),
            gone=pl.when(~pl.col("final")).then("next_at"),
        )
        .filter(~consumed)
        .drop("first", "final", "next_at", "next_time", "ends")
    )


def is_block_alive_after_record(record_row: int) -> pl.Expr:
    """Returns a column expression: whether a block exists just after the given row of `memory`."""
    begun = (pl.col("allocation") <= record_row) | pl.col("allocated").is_null()
    return pl.col("allocation").is_not_null() & begun & (pl.col("gone") > record_row)


_MIN_STEPS_WITH_MEMORY_GROWTH: Final = 3
"""Smallest number of rises of memory from step to step that counts as growth. Two are normal while
caches and optimizers fill.
"""
_MIN_SHARE_OF_GROWING_STEPS: Final = 0.5
"""Smallest share (0 to 1) of the steps in which memory must rise to count as growing."""


def step_end_times(trace: Trace) -> Ints:
    """Returns the end of each complete step in ns, in order; empty where steps are unknown."""
    steps = find_steps(trace).filter((pl.col("source") != "window") & pl.col("cut").is_null())
    return steps["end"].sort().to_numpy()


def is_block_alive_at_step_end(blocks: pl.DataFrame, step_end_times_ns: Ints) -> NDArray[np.bool_]:
    """Flags blocks allocated in the recording that exist at the end of at least one step."""
    begin, gone = _first_step_ends_in_and_after_life(blocks, step_end_times_ns)
    return np.asarray((begin < gone) & blocks["allocated"].is_not_null().to_numpy())


def _first_step_ends_in_and_after_life(blocks: pl.DataFrame, ends: Ints) -> tuple[Ints, Ints]:
    """Returns for each block the index of the first step end during its life, and after it."""
    begin = np.searchsorted(ends, blocks["allocated"].fill_null(0).to_numpy())
    return begin, np.searchsorted(ends, blocks["until"].to_numpy())


def memory_growth_per_step(
    blocks: pl.DataFrame, group_of_block: Ints, group_count: int, ends: Ints
) -> pl.Series:
    """Returns each group of blocks' memory growth in bytes per step; 0 if none, null if unknown.

    It is 0 for groups that do not grow. A group grows if its bytes at the ends of steps never fall
    from one to the next, and rise often. Memory that rises and falls is no leak, however far it
    rises.

    Args:
        blocks: Blocks, as from `memory_blocks_of_device_type`; those not allocated in the recording
            are ignored.
        group_of_block: The group of each block, shape (n,).
        group_count: The number of groups.
        ends: When the steps ended, ascending, in ns, shape (m,).
    """
    if ends.size <= _MIN_STEPS_WITH_MEMORY_GROWTH:
        return pl.repeat(None, group_count, dtype=pl.Int64, eager=True)
    lives = is_block_alive_at_step_end(blocks, ends)
    begin, gone = _first_step_ends_in_and_after_life(blocks, ends)
    size = blocks["size"].to_numpy()[lives]
    living = np.zeros((group_count, ends.size + 1), np.int64)
    np.add.at(living, (group_of_block[lives], begin[lives]), size)
    np.subtract.at(living, (group_of_block[lives], gone[lives]), size)
    alive = np.cumsum(living, axis=1)[:, :-1]
    rises = np.diff(alive, axis=1)
    often = max(_MIN_STEPS_WITH_MEMORY_GROWTH, _MIN_SHARE_OF_GROWING_STEPS * (ends.size - 1))
    grows = (rises >= 0).all(axis=1) & ((rises > 0).sum(axis=1) >= often)
    mean = np.round((alive[:, -1] - alive[:, 0]) / (ends.size - 1)).astype(np.int64)
    return pl.Series(np.where(grows, mean, 0))
