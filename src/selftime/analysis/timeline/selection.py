"""Tracks and times as the options of views choose them."""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.timeline.counters import curves
from selftime.analysis.timeline.lanes import FOREVER
from selftime.analysis.timeline.marks import mark_lanes
from selftime.analysis.timeline.slices import slice_lanes
from selftime.errors import UsageError
from selftime.schema import TRACK_KINDS
from selftime.trace import Trace

_COUNTERS: Final = "counters"


@cached_per_trace
def extent(trace: Trace) -> tuple[int, int]:
    """Begin of the first and end of the last slice, mark or sample, in ns; 0 and 0 if none is."""
    lanes = [
        lanes
        for lanes in (slice_lanes(trace).lanes, mark_lanes(trace), curves(trace).lanes)
        if lanes.start.size
    ]
    begin = min((int(one.start[one.bounds[:-1]].min()) for one in lanes), default=0)
    end = max((int(one.end(one.bounds[1:] - 1).max()) for one in lanes), default=0)
    return begin, end


def chosen_tracks(trace: Trace, words: str) -> tuple[NDArray[np.uint32], bool]:
    """The numbers of the tracks asked for, and whether counters are that belong to none of them.

    `words` are numbers and kinds of tracks and `counters`, joined by commas; empty for all.
    """
    if not words:
        return trace.tracks["id"].to_numpy(), True
    asked = {word.strip() for word in words.split(",")}
    known = {_COUNTERS, *TRACK_KINDS, *map(str, trace.tracks["id"].to_list())}
    if unknown := asked - known:
        raise UsageError(
            f"`tracks` has `{min(unknown)}`; write a track's number, {_COUNTERS}, or a kind of"
            f" {', '.join(TRACK_KINDS)}"
        )
    chosen = trace.tracks.filter(
        pl.col("id").cast(pl.String).is_in(asked) | pl.col("kind").cast(pl.String).is_in(asked)
    )
    return chosen["id"].to_numpy(), _COUNTERS in asked


def check_order(start: int, end: int) -> None:
    """Refuse a time that ends before it begins."""
    if end <= start:
        raise UsageError(
            f"`end` is `{end}`, which is not after `start`, {start}; write a later one"
        )


def chosen_time(trace: Trace, start: int, end: int) -> tuple[int, int]:
    """From when to when; without an end to that of the trace, its last instant included."""
    first, last = extent(trace)
    begin = min(start, first) if not end and not start else start
    until = end or min(max(last, begin), FOREVER) + 1
    check_order(begin, until)
    if max(-begin, until - 1) > FOREVER:
        raise UsageError(
            f"from `{begin}` to `{until}` is no time; write ns from the trace's origin"
        )
    return begin, until
