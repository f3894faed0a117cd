"""The parent of every slice, as an array to climb by."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.nesting import NONE
from selftime.trace import Trace
from selftime.views.accounts.kept import kept

__all__ = ["parents"]


@kept
def parents(trace: Trace) -> NDArray[np.int64]:
    """For each slice the innermost of its track around it, or NONE; to be read only."""
    found = trace.slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    found.flags.writeable = False
    return found
