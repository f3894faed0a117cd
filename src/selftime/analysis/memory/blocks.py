"""Blocks of memory: each allocation with its release, by device and address.

An allocation and the next record of its address are one block if that releases as many bytes. A
release before which nothing was recorded of its address ends a block from before the recording; an
allocation after which nothing was lives on at its end. What fits neither, because records are
missing or hold no address, is unpaired. An allocator's snapshot tells of blocks from before the
recording that were never released, too, with the stack of their allocation and without its time.
"""

from typing import Final

import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.memory.allocations import records
from selftime.trace import Trace

BEFORE: Final = "before the recording"
STATES: Final = ("released", "lives on", BEFORE, "unpaired", "failed")
"""What became of a block; a `failed` one never was."""
ENDLESS: Final = (1 << 63) - 1
"""Later than every instant."""

_KEY: Final = ("type", "device", "address")


def blocks_of(trace: Trace, device: str = "") -> pl.DataFrame:
    """The blocks of one type of device, or of all."""
    return blocks(records(trace, device)) if device else _every(trace)


@cached_per_trace
def _every(trace: Trace) -> pl.DataFrame:
    return blocks(records(trace))


_READ: Final = ("at", "time", "bytes", "failed", "earlier", "device_type", *_KEY)


def blocks(table: pl.DataFrame) -> pl.DataFrame:
    """One row for each block of these records (of `records`), in order of its first record.

    Columns: device_type, type, device, address, size (bytes), allocated and released (ns; null
    where not seen), allocation and release (rows of `memory`; null likewise), until and gone (the
    instant and the row of `memory` from which it lives no more; its own if it has no address),
    state (one of `STATES`), at (its first record).
    """
    sized = table.select(_READ).filter(pl.col("bytes") != 0)
    happened = sized.filter(~pl.col("failed"))
    known = happened.filter(pl.col("address").is_not_null()).sort(
        *_KEY, "at", nulls_last=True, maintain_order=True
    )
    paired = _paired(known)
    lost = happened.filter(pl.col("address").is_null()).with_columns(
        state=pl.lit("unpaired"), partner=None, until="time", gone="at"
    )
    failed = sized.filter("failed").with_columns(
        state=pl.lit("failed"), partner=None, until="time", gone="at"
    )
    every = pl.concat([paired, lost, failed], how="vertical_relaxed")
    gains = (pl.col("bytes") > 0) | pl.col("failed")
    released = table.select(partner="at", partner_time="time")
    earlier = gains & pl.col("earlier")
    return (
        every.join(released, on="partner", how="left")
        .select(
            "device_type",
            "type",
            "device",
            "address",
            "at",
            state=pl.when(earlier).then(pl.lit(BEFORE)).otherwise("state"),
            size=pl.col("bytes").abs(),
            allocated=pl.when(gains & ~earlier).then("time"),
            released=pl.when(gains).then("partner_time").otherwise("time"),
            allocation=pl.when(gains).then("at"),
            release=pl.when(gains).then("partner").otherwise("at"),
            until=pl.when(gains).then("until").otherwise("time").fill_null(ENDLESS),
            gone=pl.when(gains).then("gone").otherwise("at").cast(pl.Int64).fill_null(ENDLESS),
        )
        .sort("at")
    )


def _paired(known: pl.DataFrame) -> pl.DataFrame:
    """Records in order of key and time, less the releases that end a block among them."""

    def same(step: int) -> pl.Expr:
        return pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(step)) for name in _KEY)

    gains = pl.col("bytes") > 0
    marked = known.with_columns(
        first=~same(1).fill_null(value=False) | (pl.int_range(pl.len()) == 0),
        final=~same(-1).fill_null(value=False) | (pl.int_range(pl.len()) == pl.len() - 1),
        next_at=pl.col("at").shift(-1),
        next_time=pl.col("time").shift(-1),
    ).with_columns(ends=gains & ~pl.col("final") & (pl.col("bytes").shift(-1) == -pl.col("bytes")))
    state = (
        pl.when("ends")
        .then(pl.lit("released"))
        .when(gains & pl.col("final"))
        .then(pl.lit("lives on"))
        .when(~gains & pl.col("first"))
        .then(pl.lit(BEFORE))
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


def is_alive(record: int) -> pl.Expr:
    """Which blocks, of those whose allocation is told, hold memory after a row of `memory`."""
    begun = (pl.col("allocation") <= record) | pl.col("allocated").is_null()
    return pl.col("allocation").is_not_null() & begun & (pl.col("gone") > record)
