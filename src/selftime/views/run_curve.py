"""The durations of the steps of the whole run over time, at a given number of pixels."""

import polars as pl

from selftime.analysis.run.recorded_step_coverage import step_starts_in_trace
from selftime.analysis.run.slow_steps import steps_of_run
from selftime.analysis.run.step_kinds import step_curve
from selftime.errors import UsageError
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import Nanoseconds, Pixels, view


@view(
    Column(
        "start",
        pl.Int64,
        "ns",
        "When the first of the row's steps began, counted from the start of the process.",
    ),
    Column("kind", pl.String, "name", "The kind of step, such as training."),
    Column(
        "slow",
        pl.Boolean,
        "flag",
        "Whether the row's steps are slow: much longer than the median of their kind.",
    ),
    Column("recorded", pl.Boolean, "flag", "Whether a profiler recorded the row's steps."),
    Column("count", pl.Int64, "count", "The number of steps in this row."),
    Column("shortest", pl.Int64, "ns", "The duration of the row's shortest step."),
    Column("median", pl.Int64, "ns", "The median duration of the row's steps."),
    Column("longest", pl.Int64, "ns", "The duration of the row's longest step."),
    Column("step", pl.Int64, "id", "The number of the row's longest step in the run."),
    Column("data_wait", pl.Int64, "ns", "How long the row's longest step waited for a batch."),
    Column(
        "cause",
        pl.String,
        "name",
        "What the longest step spent most of its time above the median on; null unless slow.",
        True,
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The user's source file that ran longest in the row's longest step.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The user's source line that ran longest in the row's longest step.",
        True,
    ),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column(
        "trace_start",
        pl.Int64,
        "instant",
        "When the row's longest step begins in the trace; null if the trace lacks it.",
        True,
    ),
    needs=("ledger",),
)
def run_curve(
    trace: Trace, *, start: Nanoseconds = 0, end: Nanoseconds = 0, pixels: Pixels = 1000
) -> pl.DataFrame:
    """The durations of the run's steps over time; those that begin within one pixel are merged.

    Only steps of one kind are merged, slow ones with slow ones, recorded ones with recorded ones:
    no slow step is left out, and each row has the shortest and the longest step of a pixel. `start`
    and `end` are ns since the process started; 0 is the first step's begin, and the last one's end.
    """
    if 0 < end <= start:
        raise UsageError(f"`end` is `{end}`; write an instant after `start`, {start}")
    steps = steps_of_run(trace.run).join(
        step_starts_in_trace(trace),
        left_on="id",
        right_on="segment",
        how="left",
        maintain_order="left",
    )
    ends = steps.select(pl.col("start").min(), end=(pl.col("start") + pl.col("duration")).max() + 1)
    first, last = ends.row(0)
    first, last = start or first or 0, end or last or start + 1
    rows = step_curve(steps, first, max(last, first + 1), pixels)
    return rows.select(pl.col(column.name).cast(column.dtype) for column in run_curve.columns)
