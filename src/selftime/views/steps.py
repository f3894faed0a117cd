"""The program's steps: how long each took, on the host and on the device, and with what."""

import polars as pl

from selftime.analysis.steps.breakdown import breakdown
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view


@view(
    Column("step", pl.Int64, "id", "The step's number."),
    Column("counted", pl.Boolean, "flag", "Whether the step is included in medians."),
    Column(
        "time", pl.Int64, "ns", "From the end of the previous step to its own, on host and device."
    ),
    Column("host_time", pl.Int64, "ns", "From its begin to its end on the host."),
    Column(
        "device_time",
        pl.Int64,
        "ns",
        "From the end of the last step's device work to that of its own.",
        True,
    ),
    Column("kernel", pl.Int64, "ns", "Of the time: a kernel but a collective ran.", True),
    Column("memcpy", pl.Int64, "ns", "Of the rest: a copy ran.", True),
    Column("memset", pl.Int64, "ns", "Of the rest: a fill ran.", True),
    Column("communication", pl.Int64, "ns", "Of the rest: a collective ran, exposed.", True),
    Column("runtime", pl.Int64, "ns", "Of the rest: the host was in a runtime call.", True),
    Column(
        "data_loading", pl.Int64, "ns", "Of the rest: the host waited for the next batch.", True
    ),
    Column("cpu", pl.Int64, "ns", "Of the rest: the host was in an operator or annotation.", True),
    Column("other", pl.Int64, "ns", "What is left of the time."),
    Column("lag", pl.Int64, "ns", "From its end on the host to the end of its device work.", True),
    Column("busy", pl.Int64, "ns", "All time of it in which any device worked.", True),
    Column("all_communication", pl.Int64, "ns", "All time in collectives, hidden or not.", True),
    Column("loading", pl.Int64, "ns", "All time in data loading, whatever else ran.", True),
    Column(
        "device_slices",
        pl.Int64,
        "count",
        "Kernels, copies and fills whose recorded launch is in it.",
    ),
    Column("start", pl.Int64, "instant", "When it began on the host."),
    Column(
        "source",
        pl.String,
        "name",
        "How the steps were found: profiler, annotation, optimizer, device, periodicity, window.",
    ),
    Column("mark", pl.String, "name", "The slice that marks the step; null for a window.", True),
    Column("note", pl.String, "sentence", "Why it is not counted.", True),
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
    """Every step with its time by category; the categories add up to the time.

    Device work belongs to the step that launched it. A step's time begins on the host, or when the
    step before was done if that is later, and lasts until the host and the work that it launched
    are done. A moment counts to the first category that holds of it, in the order of the columns
    from `kernel` to `other`. The device time is the difference between the ends of a step's last
    work and of that of the steps before: what a step costs once the device is busy.
    """
    found = assessed_steps(trace)
    table = pl.concat([found.rename({"number": "step"}), breakdown(trace)], how="horizontal")
    return table.select(pl.col(column.name).cast(column.dtype) for column in steps.columns)
