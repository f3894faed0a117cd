"""Marks: events without a duration, on the tracks that they lie on."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.timeline.downsampling import Window, cells
from selftime.analysis.timeline.lanes import Lanes, lay_out
from selftime.trace import Trace


@cached_per_trace
def mark_lanes(trace: Trace) -> Lanes:
    """The marks of a trace, all those of a track on one lane."""
    track, time = trace.instants["track"].to_numpy(), trace.instants["time"].to_numpy()
    return lay_out(track, np.zeros_like(track), time, time)


def visible_marks(trace: Trace, window: Window, chosen: NDArray[np.bool_]) -> pl.DataFrame:
    """What is visible of the marks of the chosen lanes, one row a pixel.

    Columns: track, start (of the first), duration (to the last), count, name and category of the
    first.
    """
    lanes = mark_lanes(trace)
    seen = cells(lanes, window, chosen)
    start = lanes.start[seen.low]
    return trace.instants[lanes.place[seen.low]].select(
        "track",
        "name",
        "category",
        start=pl.Series(start),
        duration=pl.Series(lanes.start[seen.high - 1] - start),
        count=pl.Series(seen.high - seen.low),
    )
