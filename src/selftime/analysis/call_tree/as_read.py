"""Which threads are nested as the trace has them, so that nothing is to be nested anew."""

import numpy as np
from numpy.typing import NDArray

from selftime.trace import Trace


def as_read(
    trace: Trace, counted: NDArray[np.bool_], asynchronous: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """By thread: whether the trace's own nesting is that of what counts: all of one track."""
    tracks = trace.tracks
    part_of = np.zeros(int(tracks["thread"].max() or 0) + 1, np.int64)  # type: ignore[arg-type]  # whole numbers
    at = trace.slices["track"].to_numpy()
    odd = asynchronous | trace.slices["duration"].is_null().to_numpy()
    counts, differs = (
        np.bincount(at[which], minlength=tracks.height) > 0 for which in (counted, ~counted | odd)
    )
    thread = tracks["thread"].to_numpy()
    np.add.at(part_of, thread[counts], 1)
    np.add.at(part_of, thread[counts & differs], 2)
    return np.asarray(part_of <= 1)
