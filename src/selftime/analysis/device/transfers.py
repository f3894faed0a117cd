"""Copies and fills of devices, with what the host spent on each.

A call that launched several copies, as that of a graph does, is no copy's own: its time counts to
none of them.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.idle.gaps import placed_work
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.sites import SITE, sites
from selftime.arrays import Ints
from selftime.trace import Trace

_FOR: Final = {"DtoH": "copy_to_host", "HtoD": "copy_to_device"}
"""What a wait for a copy is called, by the copy's direction."""
_FILL: Final = "fill"
_STEP: Final = 4
"""Sizes are sorted by powers of 16: of `2 ** _STEP`."""


def transfers(trace: Trace) -> pl.DataFrame:
    """One row for each copy and fill whose end is known, in order of time.

    Columns: those of `placed_work`; direction, host_memory (see `names.copy_of`; a fill's direction
    is `fill`), bytes, at_least (the power of 16 that its size reaches), call_time (ns of the call,
    if it launched this copy alone), waited (ns that the host was held for it, see `host_waits`; 0
    if it was not), operator (its name), and the site's columns. Null is unknown.
    """
    alone = (pl.len().over("launch") == 1) & pl.col("launch").is_not_null()
    every = placed_work(trace).with_columns(alone=alone)
    work = every.filter(pl.col("kind").is_in(["memcpy", "memset"]))
    told = trace.device_args.select("id", "bytes", way=pl.col("kind").cast(pl.String))
    work = work.join(told, on="id", how="left", maintain_order="left").with_columns(
        bytes=pl.when(pl.col("bytes") >= 0).then("bytes")
    )
    site = sites(trace, work["id"])
    call = trace.slices["duration"].gather(work["launch"])
    directed = _directed(work)
    return directed.with_columns(
        pl.Series("waited", _waited(trace, directed)),
        at_least=_at_least(work["bytes"]),
        call_time=call.set(~work["alone"], None),
        operator=trace.slices["name"].gather(work["operator"]).cast(pl.String),
        **{name: site[name] for name in SITE},
    )


def _directed(work: pl.DataFrame) -> pl.DataFrame:
    """With direction and memory by the name, else by the kind that AMD's recorder writes."""
    named = work.with_columns(pl.col("name").cast(pl.String))
    distinct = named.select("kind", "name", "way").unique()
    rows = [(kind, name, way, *_read(kind, name, way)) for kind, name, way in distinct.iter_rows()]
    schema = dict.fromkeys(("kind", "name", "way", "direction", "host_memory"), pl.String)
    table = pl.DataFrame(rows, schema=schema, orient="row")
    on = ["kind", "name", "way"]
    return named.join(table, on=on, how="left", nulls_equal=True, maintain_order="left").drop("way")


def _read(kind: str, name: str, way: str | None) -> names.Copy:
    if kind == "memset":
        return names.Copy(_FILL, None)
    told = names.copy_of(name)
    return told if told.direction else names.copy_of(way or "")


def _at_least(sizes: pl.Series) -> pl.Series:
    """The largest power of 16 that is no more than each size; 0 for nothing."""
    size = sizes.fill_null(0).cast(pl.Int64).to_numpy()
    bits = np.frexp(size.astype(np.float64))[1].astype(np.int64) - 1
    floor = np.where(size > 0, np.left_shift(1, np.maximum(bits, 0) // _STEP * _STEP), 0)
    return pl.Series(floor, dtype=pl.Int64).set(sizes.is_null(), None)


def _waited(trace: Trace, work: pl.DataFrame) -> Ints:
    """How long the host was held for each copy.

    A wait for a copy is for the last one in its direction that its thread launched before it ended.
    """
    found = np.zeros(work.height, np.int64)
    copies = work.with_row_index("at").filter(
        pl.col("launch").is_not_null() & pl.col("direction").is_in(list(_FOR))
    )
    if not copies.height:
        return found
    track = trace.slices["track"].gather(copies["launch"])
    asked = copies.select(
        "at",
        pl.col("launched").alias("when"),
        pl.col("direction").replace_strict(_FOR, return_dtype=pl.String).alias("kind"),
        trace.tracks["thread"].gather(track).alias("thread"),
    ).sort("when", "at")
    held = host_waits(trace).select("kind", "thread", "wait", when="end").sort("when")
    told = held.join_asof(asked, on="when", by=["kind", "thread"], check_sortedness=False)
    known = told.filter(pl.col("at").is_not_null())
    np.add.at(found, known["at"].to_numpy(), known["wait"].to_numpy())
    return found
