"""Where Python logs."""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.trace import Trace


@cached_per_trace
def logging_frames(trace: Trace) -> pl.DataFrame:
    """Python frames that log; those around a product are the program's, called by a library's."""
    frames = filter_by_name(slices_on(trace, "python"), names.is_logging)
    frames = frames.filter(pl.col("duration").is_not_null())
    products = filter_by_name(slices_on(trace, "host"), names.is_matrix_operator)
    work = np.sort(products["start"].to_numpy())
    begin = frames["start"].to_numpy()
    end = begin + frames["duration"].to_numpy()
    around = np.searchsorted(work, begin) != np.searchsorted(work, end)
    return frames.filter(~pl.Series(around, dtype=pl.Boolean))
