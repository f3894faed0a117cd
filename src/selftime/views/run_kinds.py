"""The kinds of step of the whole run."""

import polars as pl

from selftime.analysis.run.step_kinds import step_kinds
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


@view(
    Column("kind", pl.String, "name", "The kind of step, such as training."),
    Column("count", pl.Int64, "count", "The number of steps of the kind."),
    Column("median", pl.Float64, "ns", "The median duration of a step of the kind."),
    Column("p95", pl.Float64, "ns", "The 95th percentile of the durations of steps of the kind."),
    Column(
        "data_wait", pl.Float64, "ns", "How long a step of the kind waits for a batch, on average."
    ),
    Column(
        "forward",
        pl.Float64,
        "ns",
        "The median time of a step before its backward passes, without waits; null if none.",
        True,
    ),
    Column("backward", pl.Float64, "ns", "The median time in backward passes.", True),
    Column("optimizer", pl.Float64, "ns", "The median time in optimizer steps.", True),
    Column("passes", pl.Float64, "count", "The median number of backward passes of a step.", True),
    Column(
        "device",
        pl.Float64,
        "ns",
        "The median time on the device from the end of one step's work to that of the next.",
        True,
    ),
    Column("total", pl.Int64, "ns", "The summed duration of all steps of the kind."),
    Column(
        "slow", pl.Int64, "count", "The number of steps of the kind much longer than their median."
    ),
    Column(
        "excess",
        pl.Int64,
        "ns",
        "The time by which the slow steps exceed the median step, summed over the slow steps.",
    ),
    Column(
        "recorded", pl.Int64, "count", "The number of steps of the kind that a profiler recorded."
    ),
    Column(
        "covered",
        pl.Int64,
        "ns",
        "Time of all steps of this kind if one was recorded, else 0.",
    ),
    Column("file", pl.String, "text", "The source file of the loop that runs the steps.", True),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line of the loop that runs the steps; null if unknown.",
        True,
    ),
    needs=("ledger",),
    sums=("count", "total", "slow", "excess", "recorded", "covered"),
)
def run_kinds(trace: Trace) -> pl.DataFrame:
    """The kinds of step of the whole run, such as training and evaluation, with their durations.

    A step with an evaluation or a new pass over the data is of a kind of its own. It is slow if it
    takes at least twice the median of the steps without, and 20 ms longer. Median, 95th percentile
    and wait for data are of the steps that no profiler recorded, without work of selftime.
    """
    kinds = step_kinds(trace.run)
    return kinds.select(pl.col(column.name).cast(column.dtype) for column in run_kinds.columns)
