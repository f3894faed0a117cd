"""Measures how long launched work waits in its stream's queue, and how long its stream is idle.

A stream does its work in launch order, so a launch is done when it and everything launched to its
stream before it is done. The delay between a call and its work has two parts. While the stream
still had earlier work, the launch was queued; the rest is exposed: the stream was idle. Work
without a recorded launch keeps its place in the queue.
"""

from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.device.device_work import device_work
from selftime.analysis.health.recording_under_check import RecordingUnderCheck
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.array_types import Ints
from selftime.trace import Trace

FULL_STREAM_QUEUE_LENGTH: Final = 1_000
"""Number of queued launches from which a launch may block the host, as the queue may be full.

CUDA's queues hold 1,022 launches where that was measured, of which a recording may lack a few.
Queues of AMD's devices are deeper.
"""


@cached_per_trace
def launches_with_queue_delays(trace: Trace) -> pl.DataFrame:
    """Returns one row per launching call: its delay until its device work began, and why.

    Calls captured into a graph are left out, and so are fills without work: fills of zero bytes
    have none. A call that launched work on several streams, such as a graph launch, is described by
    its first work.

    Columns: id, call (its name), start, host (ns that the call took, null if unknown), operator
    (the slice of the innermost operator around it), lost (no device work was recorded), work
    (number of slices launched), device_time (sum of their durations, ns), first (the first of these
    slices), device, stream; depth (earlier launches of the stream that were not done when the call
    began); delay (from the call's begin to that of the work), queued and exposed (its two parts),
    all in ns; began_before_launch (the work begins before the call, so the delay is unknown).
    Depth, queued and exposed are null for a stream's first work, because work from before the
    recording is unknown.
    """
    told = trace.call_args.select("id", "operator")
    known = _launches_with_work(trace)
    missing = RecordingUnderCheck(trace).launches.filter(~pl.col("id").is_in(known["id"].implode()))
    both = pl.concat([known, missing.select("id", "lost")], how="diagonal")
    slices = trace.slices
    calls = slices.select("name", "start", "duration")[both["id"]]
    return (
        both.with_columns(
            pl.col("work", "device_time").fill_null(0),
            pl.col("lost", "began_before_launch").fill_null(value=False),
            call=calls["name"].cast(pl.String),
            start=calls["start"],
            host=calls["duration"],
        )
        .join(told, on="id", how="left", maintain_order="left")
        .sort("start", "id")
    )


def _launches_with_work(trace: Trace) -> pl.DataFrame:
    """Returns the calls whose device work was recorded, each with its first device slice."""
    entries = _stream_queue_entries(device_work(trace)).filter(pl.col("launch").is_not_null())
    ahead = pl.col("free").clip(pl.col("launched"))
    parts = entries.with_columns(
        began_before_launch=pl.col("begin") < pl.col("launched"),
        exposed=(pl.col("begin") - ahead).clip(0),
    ).with_columns(
        delay=pl.when(~pl.col("began_before_launch")).then(pl.col("begin") - pl.col("launched"))
    )
    exposed = pl.when(pl.col("delay").is_not_null()).then("exposed")
    sums = parts.select(
        "launch",
        pl.col("work", "device_time").sum().over("launch"),
        *("first", "device", "stream", "depth", "delay", "began_before_launch", "begin"),
        exposed=exposed,
    )
    return (
        sums.sort("begin", "first")
        .unique("launch", keep="first", maintain_order=True)
        .with_columns(queued=pl.col("delay") - pl.col("exposed"))
        .drop("begin")
        .rename({"launch": "id"})
    )


def _stream_queue_entries(work: pl.DataFrame) -> pl.DataFrame:
    """Returns one row per call and stream on which the call put work, in order of the work's begin.

    Added columns: free, when all earlier work of the stream is done; depth, see
    `launches_with_queue_delays`.
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
        depth=pl.Series(_stream_queue_depths(entries, done.to_numpy()), dtype=pl.Int64).set(
            opens, None
        ),
    )


def _stream_queue_depths(queue_entries: pl.DataFrame, ends_so_far: Ints) -> Ints:
    """Returns for each launch how many earlier launches of its stream are not yet done then."""
    track = queue_entries["track"].to_numpy()
    launched = queue_entries["launched"].fill_null(0).to_numpy()
    depth = np.zeros(track.size, np.int64)
    edges = [0, *(np.flatnonzero(np.diff(track)) + 1), track.size]
    for low, high in pairwise(edges):
        place = np.arange(high - low)
        finished = np.searchsorted(ends_so_far[low:high], launched[low:high], side="right")
        depth[low:high] = place - np.minimum(finished, place)
    return depth
