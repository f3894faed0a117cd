"""Who holds the memory of the devices at their peaks."""

import polars as pl

from selftime.trace import Trace
from selftime.views.accounts.kept import kept

__all__ = ["holders"]


def holders(trace: Trace, device: int) -> pl.DataFrame:
    """The rows of `memory_peak` of one accelerator, largest first; none if not recorded."""
    return _every(trace).filter((pl.col("device") == device) & (pl.col("device_type") != "CPU"))


@kept
def _every(trace: Trace) -> pl.DataFrame:
    return trace.view("memory_peak")
