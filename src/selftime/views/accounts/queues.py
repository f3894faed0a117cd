"""How much work waits on a stream when more is launched.

The queue of a stream is its work that is launched and not yet done, the running one included.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["queue_depths"]

Ints = NDArray[np.int64]


def queue_depths(work: pl.DataFrame) -> pl.Series:
    """Work on the same stream that was launched before each and not done at its launch.

    Needs columns device, stream, launched (ns) and end (ns). 0 says that the stream had nothing
    left to do; null that the launch is not known.
    """
    depth = np.full(work.height, -1, np.int64)
    launched = work["launched"].cast(pl.Float64).to_numpy()
    end = work["end"].to_numpy()
    streams = work.select(pl.struct("device", "stream").rank("dense")).to_series().to_numpy()
    known = np.flatnonzero(~np.isnan(launched))
    order = known[np.argsort(streams[known], kind="stable")]
    edges = np.flatnonzero(np.diff(streams[order])) + 1
    for own in np.split(order, edges):
        if own.size:
            depth[own] = _depths(work["launched"].gather(own).to_numpy(), end[own])
    return pl.Series("queue", depth).set(pl.Series(depth < 0), None)


def _depths(launched: Ints, end: Ints) -> Ints:
    """Launched before each, less those of them that were done by then."""
    begun = np.searchsorted(np.sort(launched), launched, side="left")
    done = np.searchsorted(np.sort(end), launched, side="right")
    return np.asarray(np.maximum(begun - done, 0), np.int64)
