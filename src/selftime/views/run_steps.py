"""Every step of the whole run, whether a trace of it was recorded or not."""

import polars as pl

from selftime.analysis.run.recorded_step_coverage import step_starts_in_trace
from selftime.analysis.run.slow_steps import steps_of_run
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


@view(
    Column("step", pl.Int64, "id", "The step's number in the run, from 0."),
    Column("kind", pl.String, "name", "The kind of step, such as training."),
    Column("start", pl.Int64, "ns", "When the step began, counted from the start of the process."),
    Column("time", pl.Int64, "ns", "The duration of the step."),
    Column("data_wait", pl.Int64, "ns", "The part of the step spent waiting for a batch."),
    Column(
        "epoch_boundary",
        pl.Int64,
        "ns",
        "The part of the step spent starting a DataLoader's iterator.",
    ),
    Column(
        "evaluation", pl.Int64, "ns", "The part of the step in evaluations, such as after `eval()`."
    ),
    Column("compile", pl.Int64, "ns", "The part of the step in which `torch.compile` compiled."),
    Column(
        "garbage_collection",
        pl.Int64,
        "ns",
        "The part of the step spent in Python's garbage collection.",
    ),
    Column("recording", pl.Int64, "ns", "The part of the step spent in selftime's own work."),
    Column(
        "forward",
        pl.Int64,
        "ns",
        "The part of the step before its backward passes, without waits; null if there are none.",
        True,
    ),
    Column(
        "backward", pl.Int64, "ns", "The part of the step in backward passes; null if none.", True
    ),
    Column(
        "optimizer", pl.Int64, "ns", "The part of the step in optimizer steps; null if none.", True
    ),
    Column(
        "device",
        pl.Int64,
        "ns",
        "Time on the device from the end of the last step's work to that of this step's.",
        True,
    ),
    Column(
        "recorded",
        pl.Boolean,
        "flag",
        "Whether a profiler recorded the step, which slows the step down.",
    ),
    Column(
        "excess",
        pl.Int64,
        "ns",
        "How much longer the step took than the median of its kind; 0 unless slow.",
    ),
    Column(
        "cause",
        pl.String,
        "name",
        "What most of a slow step's time above the median was spent on; null unless slow.",
        True,
    ),
    Column(
        "file", pl.String, "text", "The user's source file that ran longest in a slow step.", True
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line that stack samples saw most in a slow step.",
        True,
    ),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column(
        "trace_start",
        pl.Int64,
        "instant",
        "When the step begins in the trace; null if the trace lacks it.",
        True,
    ),
    needs=("ledger",),
    sums=("time", "data_wait", "excess"),
)
def run_steps(trace: Trace, *, slow: bool = False) -> pl.DataFrame:
    """Each step of the whole run with its duration, whether a trace of it was recorded or not.

    A step is slow if it takes at least twice the median of its kind, and 20 ms longer. From about
    then on its Python stack was read, which tells the line. With `slow` the table has only these,
    the one that took longest beyond the median first.
    """
    steps = steps_of_run(trace.run).rename({"duration": "time"})
    if slow:
        steps = steps.filter(pl.col("excess") > 0)
        steps = steps.sort("excess", "step", descending=[True, False])
    steps = steps.join(
        step_starts_in_trace(trace),
        left_on="id",
        right_on="segment",
        how="left",
        maintain_order="left",
    )
    return steps.select(pl.col(column.name).cast(column.dtype) for column in run_steps.columns)
