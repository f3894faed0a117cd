"""Copies and fills on devices, with the host time spent on each.

A call that launched several copies, such as a graph launch, belongs to no single copy: its time
counts for none of them.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import device_work
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.array_types import Ints
from selftime.trace import Trace

_HOST_WAIT_KIND_BY_COPY_DIRECTION: Final = {"DtoH": "copy_to_host", "HtoD": "copy_to_device"}
"""Maps the direction of a copy to the kind of a host's wait for it."""
_DIRECTION_LABEL_OF_FILLS: Final = "fill"
_SIZE_CLASS_RATIO_LOG2: Final = 4
"""Base-2 logarithm of the ratio of the limits of neighbouring size classes: limits are powers of
16.
"""


def device_copies_and_fills(trace: Trace) -> pl.DataFrame:
    """Returns one row for each copy and fill whose end is known, in order of time.

    Columns: those of `device_work`; direction (`fill` for fills), host_memory (see
    `names.memcpy_kind`), bytes, at_least (the power of 16 that its size reaches), call_time (ns of
    the call, if it launched only this copy), waited (ns that the host waited for it, see
    `host_waits`; 0 if it did not), operator (its name), and the columns of its site. Unknown values
    are null.
    """
    alone = (pl.len().over("launch") == 1) & pl.col("launch").is_not_null()
    every = device_work(trace).with_columns(alone=alone)
    work = every.filter(pl.col("kind").is_in(["memcpy", "memset"]))
    told = trace.device_args.select("id", "bytes", way=pl.col("kind").cast(pl.String))
    work = work.join(told, on="id", how="left", maintain_order="left").with_columns(
        bytes=pl.when(pl.col("bytes") >= 0).then("bytes")
    )
    site = source_sites_of_slices(trace, work["id"])
    call = trace.slices["duration"].gather(work["launch"])
    directed = _copies_with_direction(work)
    return directed.with_columns(
        pl.Series("waited", _host_wait_times_for_copies(trace, directed)),
        at_least=_size_class_lower_limits(work["bytes"]),
        call_time=call.set(~work["alone"], None),
        operator=trace.slices["name"].gather(work["operator"]).cast(pl.String),
        **{name: site[name] for name in SOURCE_SITE_COLUMNS},
    )


def _copies_with_direction(work: pl.DataFrame) -> pl.DataFrame:
    """Adds each copy's direction and host memory kind, from its name or AMD's argument `kind`."""
    named = work.with_columns(pl.col("name").cast(pl.String))
    distinct = named.select("kind", "name", "way").unique()
    rows = [
        (kind, name, way, *_copy_direction_and_host_memory(kind, name, way))
        for kind, name, way in distinct.iter_rows()
    ]
    schema = dict.fromkeys(("kind", "name", "way", "direction", "host_memory"), pl.String)
    table = pl.DataFrame(rows, schema=schema, orient="row")
    on = ["kind", "name", "way"]
    return named.join(table, on=on, how="left", nulls_equal=True, maintain_order="left").drop("way")


def _copy_direction_and_host_memory(
    slice_kind: str, slice_name: str, recorded_kind: str | None
) -> names.MemcpyKind:
    if slice_kind == "memset":
        return names.MemcpyKind(_DIRECTION_LABEL_OF_FILLS, None)
    told = names.memcpy_kind(slice_name)
    return told if told.direction else names.memcpy_kind(recorded_kind or "")


def _size_class_lower_limits(sizes: pl.Series) -> pl.Series:
    """Returns for each size in bytes the largest power of 16 that is not above it; 0 for size 0."""
    size = sizes.fill_null(0).cast(pl.Int64).to_numpy()
    bits = np.frexp(size.astype(np.float64))[1].astype(np.int64) - 1
    floor = np.where(
        size > 0,
        np.left_shift(1, np.maximum(bits, 0) // _SIZE_CLASS_RATIO_LOG2 * _SIZE_CLASS_RATIO_LOG2),
        0,
    )
    return pl.Series(floor, dtype=pl.Int64).set(sizes.is_null(), None)


def _host_wait_times_for_copies(trace: Trace, copies_and_fills: pl.DataFrame) -> Ints:
    """Returns for each copy or fill how long the host waited for it, in ns.

    A wait for a copy is for the last copy in its direction that its thread launched before the wait
    ended.
    """
    found = np.zeros(copies_and_fills.height, np.int64)
    copies = copies_and_fills.with_row_index("at").filter(
        pl.col("launch").is_not_null()
        & pl.col("direction").is_in(list(_HOST_WAIT_KIND_BY_COPY_DIRECTION))
    )
    if not copies.height:
        return found
    track = trace.slices["track"].gather(copies["launch"])
    asked = copies.select(
        "at",
        pl.col("launched").alias("when"),
        pl.col("direction")
        .replace_strict(_HOST_WAIT_KIND_BY_COPY_DIRECTION, return_dtype=pl.String)
        .alias("kind"),
        trace.tracks["thread"].gather(track).alias("thread"),
    ).sort("when", "at")
    held = host_waits(trace).select("kind", "thread", "wait", when="end").sort("when")
    told = held.join_asof(asked, on="when", by=["kind", "thread"], check_sortedness=False)
    known = told.filter(pl.col("at").is_not_null())
    np.add.at(found, known["at"].to_numpy(), known["wait"].to_numpy())
    return found
