"""Where Python logs."""

import numpy as np
import polars as pl

from selftime import names
from selftime.trace import Trace
from selftime.views.accounts.kept import kept
from selftime.views.accounts.named import of_kind, whose_name

__all__ = ["logging_frames"]


@kept
def logging_frames(trace: Trace) -> pl.DataFrame:
    """Python frames that log; those around a product are the program's, called by a library's."""
    frames = whose_name(of_kind(trace, "python"), names.is_logging)
    frames = frames.filter(pl.col("duration").is_not_null())
    products = whose_name(of_kind(trace, "host"), names.is_matrix_operator)
    work = np.sort(products["start"].to_numpy())
    begin = frames["start"].to_numpy()
    end = begin + frames["duration"].to_numpy()
    around = np.searchsorted(work, begin) != np.searchsorted(work, end)
    return frames.filter(~pl.Series(around, dtype=pl.Boolean))
