"""The program's steps: how long each took on host and device, by category."""

import polars as pl

from selftime.analysis.steps.breakdown import step_breakdown
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


@view(
    Column("step", pl.Int64, "id", "The step's number."),
    Column("counted", pl.Boolean, "flag", "Whether the step is included in medians."),
    Column(
        "time",
        pl.Int64,
        "ns",
        "Time from the end of the previous step to the end of this one, on host and device.",
    ),
    Column("host_time", pl.Int64, "ns", "Time from the step's begin to its end on the host."),
    Column(
        "device_time",
        pl.Int64,
        "ns",
        "Time from the end of the previous step's device work to the end of this step's.",
        True,
    ),
    Column(
        "kernel",
        pl.Int64,
        "ns",
        "The part of the time in which a kernel ran that is not a collective.",
        True,
    ),
    Column("memcpy", pl.Int64, "ns", "The part of the remaining time in which a copy ran.", True),
    Column("memset", pl.Int64, "ns", "The part of the remaining time in which a fill ran.", True),
    Column(
        "communication",
        pl.Int64,
        "ns",
        "The part of the remaining time in which a collective ran.",
        True,
    ),
    Column(
        "runtime",
        pl.Int64,
        "ns",
        "The part of the remaining time in which the host was in a runtime call.",
        True,
    ),
    Column(
        "data_loading",
        pl.Int64,
        "ns",
        "The part of the remaining time in which the host waited for the next batch.",
        True,
    ),
    Column(
        "cpu",
        pl.Int64,
        "ns",
        "The part of the remaining time in which the host was in an operator or annotation.",
        True,
    ),
    Column("other", pl.Int64, "ns", "The time that remains."),
    Column(
        "lag",
        pl.Int64,
        "ns",
        "Time from the step's end on the host to the end of its device work.",
        True,
    ),
    Column("busy", pl.Int64, "ns", "All time in which any device worked.", True),
    Column(
        "all_communication", pl.Int64, "ns", "All time in collectives, overlaps included.", True
    ),
    Column("loading", pl.Int64, "ns", "All time in data loading, overlaps included.", True),
    Column(
        "device_slices",
        pl.Int64,
        "count",
        "The number of kernels, copies and fills launched in the step.",
    ),
    Column("start", pl.Int64, "instant", "When the step began on the host."),
    Column(
        "source",
        pl.String,
        "name",
        "How the steps were found: profiler, annotation, optimizer, device, periodicity, window.",
    ),
    Column("mark", pl.String, "name", "The slice that marks the step; null for a window.", True),
    Column(
        "note", pl.String, "sentence", "Why medians do not include the step; null if they do.", True
    ),
    sums=(
        "time",
        "host_time",
        "device_time",
        "kernel",
        "memcpy",
        "memset",
        "communication",
        "runtime",
        "data_loading",
        "cpu",
        "other",
        "busy",
        "all_communication",
        "loading",
        "device_slices",
    ),
)
def steps(trace: Trace) -> pl.DataFrame:
    """Every step of the program with its time by category; the categories add up to the time.

    Device work belongs to the step that launched it. A step's time begins on the host, or when the
    previous step was done if that is later, and lasts until the host and the work that it launched
    are done. A moment counts to the first category that applies, in the order of the columns from
    `kernel` to `other`. The device time is the time from the end of the previous steps' last work
    to that of the step's own: the cost of a step while the device is busy.
    """
    found = steps_with_counted_flags(trace)
    table = pl.concat([found.rename({"number": "step"}), step_breakdown(trace)], how="horizontal")
    return table.select(pl.col(column.name).cast(column.dtype) for column in steps.columns)
