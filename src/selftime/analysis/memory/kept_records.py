"""Chooses the memory records that a curve keeps: few, with every peak among them."""

import math
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.timeline.tracks import require_end_after_start

RECORDS_KEPT_PER_TIME_INTERVAL: Final = 4
"""Number of records kept per time interval: lowest and highest allocated, highest reserved, last.
"""
ROW_OF_TIME_BEFORE_RECORDS: Final = -1
"""The row of `memory` that stands for the time before a device's first record."""


def memory_records_in_time_range(records: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """Returns one device's records with totals in a time range, and the totals that it begins with.

    Args:
        records: Records with totals, as from `memory_records_with_totals`, of one device.
        start: The first instant in ns; the record before it is moved there. 0 for all.
        end: The last instant in ns; 0 for all.
    """
    if not start and not end:
        return records
    if end:
        require_end_after_start(start, end)
    inside = records.filter(pl.col("time").is_between(start + 1, end or math.inf))
    return pl.concat([totals_at_instant(records, start), inside], how="vertical_relaxed")


def totals_at_instant(records: pl.DataFrame, instant: int) -> pl.DataFrame:
    """Returns one device's totals at an instant (ns) as one row, with that instant as its time.

    Before the first record they are what that record changed.
    """
    earlier = records.filter(pl.col("time") <= instant).tail(1)
    first = records.head(1).with_columns(
        at=pl.lit(ROW_OF_TIME_BEFORE_RECORDS, dtype=pl.Int64),
        allocated=pl.col("allocated") - pl.col("bytes"),
    )
    return (earlier if earlier.height else first).with_columns(time=pl.lit(max(instant, 0)))


def downsample_memory_records(records: pl.DataFrame, max_records: int) -> pl.DataFrame:
    """Returns at most `max_records` records of one device, every peak among them; 0 keeps all."""
    if not max_records or records.height <= max_records:
        return records
    time = records["time"].to_numpy()
    stretches = max(max_records // RECORDS_KEPT_PER_TIME_INTERVAL, 1)
    span = max(int(time[-1]) - int(time[0]), 1)
    # Float division first: the product of a long span and many intervals would overflow.
    stretch = np.minimum(((time - time[0]) / span * stretches).astype(np.int64), stretches - 1)
    chosen = (
        records.with_row_index("place")
        .group_by(stretch=pl.Series(stretch))
        .agg(
            lowest=pl.col("place").sort_by("allocated", maintain_order=True).first(),
            highest=pl.col("place").sort_by("allocated", descending=True).first(),
            reserved=pl.col("place").sort_by("reserved", descending=True, nulls_last=True).first(),
            last=pl.col("place").last(),
        )
    )
    places = pl.concat([chosen[name] for name in ("lowest", "highest", "reserved", "last")])
    return records[places.unique().sort()]
