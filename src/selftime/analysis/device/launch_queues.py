"""Launches and the queues that they join: how long work waits, for earlier work or for nothing.

A stream does its work in the order of launching, so a launch is done when all that was launched to
its stream before it is, and itself. Of the delay between a call and its work, the part in which the
stream still had earlier work is time in the queue; the rest is exposed: the stream stood idle. Work
of which no launch was recorded keeps its place in the queue.
"""

from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.health.recording import Recording
from selftime.analysis.idle.gaps import placed_work
from selftime.arrays import Ints
from selftime.trace import Trace

FULL: Final = 1_000
"""From about here on a launch may hold the host: CUDA's queues hold 1,022 launches where it was
measured, of which a recording may lack a few. Those of AMD are deeper."""


@cached_per_trace
def queued_launches(trace: Trace) -> pl.DataFrame:
    """One row for each call that put work on a device, or was to, in order of time.

    Calls captured into a graph are left out, fills without work too: those of no bytes have none.
    A call that put work on several streams, as that of a graph does, is told by the first work.

    Columns: id, call (its name), start, host (ns that the call took, null if not known), operator
    (the slice of the innermost around it), lost (no device work was recorded), work (count of
    slices launched), device_time (sum of their durations, ns), first (the first of these slices),
    device, stream; depth (earlier launches of the stream that were not done when the call began);
    delay (from the call's begin to that of the work), queued and exposed (its two parts), all ns;
    inverted (the work begins before the call, so that the delay is unknown). Depth, queued and
    exposed are null for a stream's first work: what it did before the recording is not known.
    """
    told = trace.call_args.select("id", "operator")
    known = _with_work(trace)
    missing = Recording(trace).launches.filter(~pl.col("id").is_in(known["id"].implode()))
    both = pl.concat([known, missing.select("id", "lost")], how="diagonal")
    slices = trace.slices
    calls = slices.select("name", "start", "duration")[both["id"]]
    return (
        both.with_columns(
            pl.col("work", "device_time").fill_null(0),
            pl.col("lost", "inverted").fill_null(value=False),
            call=calls["name"].cast(pl.String),
            start=calls["start"],
            host=calls["duration"],
        )
        .join(told, on="id", how="left", maintain_order="left")
        .sort("start", "id")
    )


def _with_work(trace: Trace) -> pl.DataFrame:
    """Calls whose work was recorded, each with what became of the first of it."""
    entries = _entries(placed_work(trace)).filter(pl.col("launch").is_not_null())
    ahead = pl.col("free").clip(pl.col("launched"))
    parts = entries.with_columns(
        inverted=pl.col("begin") < pl.col("launched"),
        exposed=(pl.col("begin") - ahead).clip(0),
    ).with_columns(delay=pl.when(~pl.col("inverted")).then(pl.col("begin") - pl.col("launched")))
    exposed = pl.when(pl.col("delay").is_not_null()).then("exposed")
    sums = parts.select(
        "launch",
        pl.col("work", "device_time").sum().over("launch"),
        *("first", "device", "stream", "depth", "delay", "inverted", "begin"),
        exposed=exposed,
    )
    return (
        sums.sort("begin", "first")
        .unique("launch", keep="first", maintain_order=True)
        .with_columns(queued=pl.col("delay") - pl.col("exposed"))
        .drop("begin")
        .rename({"launch": "id"})
    )


def _entries(work: pl.DataFrame) -> pl.DataFrame:
    """What stands in the queues: all work that one call put on one stream, in order of begin.

    Added columns: free, when all before it on the stream is done; depth, see `queued_launches`.
    """
    alone = pl.col("id").cast(pl.Int64)
    entries = (
        work.with_columns(entry=pl.coalesce(pl.col("launch").cast(pl.Int64), -1 - alone))
        .group_by("track", "entry", maintain_order=True)
        .agg(
            pl.col("launch", "launched", "device", "stream").first(),
            work=pl.len().cast(pl.Int64),
            device_time=pl.col("duration").sum(),
            first=pl.col("id").first(),
            begin=pl.col("start").first(),
            end=pl.col("end").max(),
        )
        .sort("track", maintain_order=True)
    )
    done = entries.select(pl.col("end").cum_max().over("track")).to_series()
    free = pl.select(pl.lit(done).shift(1)).to_series()
    track = entries["track"]
    opens = (track != track.shift(1)).fill_null(value=True)
    return entries.with_columns(
        free=free.set(opens, None),
        depth=pl.Series(_depths(entries, done.to_numpy()), dtype=pl.Int64).set(opens, None),
    )


def _depths(entries: pl.DataFrame, done: Ints) -> Ints:
    """For each entry, how many before it on its track are not done when it is launched."""
    track = entries["track"].to_numpy()
    launched = entries["launched"].fill_null(0).to_numpy()
    depth = np.zeros(track.size, np.int64)
    edges = [0, *(np.flatnonzero(np.diff(track)) + 1), track.size]
    for low, high in pairwise(edges):
        place = np.arange(high - low)
        finished = np.searchsorted(done[low:high], launched[low:high], side="right")
        depth[low:high] = place - np.minimum(finished, place)
    return depth
