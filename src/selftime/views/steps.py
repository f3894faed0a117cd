"""The program's steps: how long each took, on the host and on the device, and with what."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.intervals import Intervals, before, subtract, union
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.accounts.judging import judged_steps
from selftime.views.accounts.spans import CATEGORIES, spans
from selftime.views.base import view

__all__ = ["steps"]

Ints = NDArray[np.int64]


@view(
    Column("step", pl.Int64, "id", "The step's number."),
    Column("start", pl.Int64, "instant", "When it began on the host."),
    Column("host_time", pl.Int64, "ns", "From its begin to its end on the host."),
    Column(
        "device_time", pl.Int64, "ns", "Between the ends of its and the last step's work.", True
    ),
    Column("lag", pl.Int64, "ns", "From its end on the host to the end of its device work.", True),
    Column("kernel", pl.Int64, "ns", "Of the host time: a kernel ran, other than a collective."),
    Column("memcpy", pl.Int64, "ns", "Of the rest: a copy ran."),
    Column("memset", pl.Int64, "ns", "Of the rest: a fill ran."),
    Column("communication", pl.Int64, "ns", "Of the rest: a collective ran."),
    Column("runtime", pl.Int64, "ns", "Of the rest: the host was in a runtime call."),
    Column(
        "data_loading", pl.Int64, "ns", "Of the rest: the host waited for the next batch.", True
    ),
    Column("cpu", pl.Int64, "ns", "Of the rest: the host was in an operator or annotation."),
    Column("other", pl.Int64, "ns", "What is left of the host time."),
    Column("loading", pl.Int64, "ns", "All time in data loading, whatever else ran.", True),
    Column("device_slices", pl.Int64, "count", "Kernels, copies and fills that it launched."),
    Column("source", pl.String, "name", "What tells the steps: profiler, optimizer, window."),
    Column("counted", pl.Boolean, "flag", "Whether medians take it in."),
    Column("note", pl.String, "sentence", "Why it is not counted.", True),
)
def steps(trace: Trace) -> pl.DataFrame:
    """Every step with its time by category; the categories add up to the host time.

    A moment counts to the first category that holds of it, in the order of the columns. Device work
    belongs to the step that launched it. The device time of a step is the difference between the
    ends of its last work and of that of the step before: what a step costs once the device is busy.
    """
    found = judged_steps(trace)
    start, end = found["start"].to_numpy(), found["end"].to_numpy()
    parts = spans(trace)
    columns: dict[str, Any] = {}
    covered = union([], [])
    for part in CATEGORIES:
        own = subtract(parts[part], covered)
        covered = union(
            np.append(covered.starts, parts[part].starts), np.append(covered.ends, parts[part].ends)
        )
        columns[part] = _within(own, start, end)
    columns["other"] = (end - start) - _within(covered, start, end)
    columns["loading"] = _within(parts["data_loading"], start, end)
    table = found.rename({"number": "step"}).with_columns(**columns)
    if not parts["data_loading"].starts.size:  # no row of it anywhere: not known, which is not zero
        table = table.with_columns(data_loading=None, loading=None)
    return table.select(pl.col(column.name).cast(column.dtype) for column in steps.columns)


def _within(these: Intervals, start: Ints, end: Ints) -> Ints:
    """How much of a set lies in each of the windows."""
    return before(these, end) - before(these, start)
