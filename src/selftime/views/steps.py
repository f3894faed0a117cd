"""The program's steps: how long each took on host and device, by category."""

import polars as pl

from selftime.analysis.steps.breakdown import step_breakdown
from selftime.analysis.steps.slow_steps import slow_step_excesses
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


@view(
    Column("step", pl.Int64, "id", "The step's number."),
    Column("counted", pl.Boolean, "flag", "Whether medians over steps include the step."),
    Column(
        "time",
        pl.Int64,
        "ns",
        "Time from the end of the previous step to the end of this step, on host and device.",
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
        "The part of the step in which a kernel ran that is not a collective.",
        True,
    ),
    Column(
        "memcpy", pl.Int64, "ns", "The part of the step in which a copy ran, but no kernel.", True
    ),
    Column(
        "memset",
        pl.Int64,
        "ns",
        "The part of the step in which a fill ran, but no kernel or copy.",
        True,
    ),
    Column(
        "communication",
        pl.Int64,
        "ns",
        "The part of the step in which a collective ran, but no other kernel, copy or fill.",
        True,
    ),
    Column(
        "runtime",
        pl.Int64,
        "ns",
        "The part of the step in which the host was in a runtime call and the device idle.",
        True,
    ),
    Column(
        "data_loading",
        pl.Int64,
        "ns",
        "The part of the step in which the host waited for the next batch and the device idled.",
        True,
    ),
    Column(
        "cpu",
        pl.Int64,
        "ns",
        "Device-idle time of the step in host operators outside runtime calls and data loading.",
        True,
    ),
    Column("other", pl.Int64, "ns", "The part of the step that no other time category explains."),
    Column(
        "lag",
        pl.Int64,
        "ns",
        "Time from the step's end on the host to the end of its device work.",
        True,
    ),
    Column(
        "busy",
        pl.Int64,
        "ns",
        "Time of the step in which any device worked, whatever the host did.",
        True,
    ),
    Column(
        "all_communication",
        pl.Int64,
        "ns",
        "Time of the step in which a collective ran, overlaps with other work included.",
        True,
    ),
    Column(
        "loading",
        pl.Int64,
        "ns",
        "Time of the step in data loading, overlaps with other work included.",
        True,
    ),
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
        "What steps were found by: profiler, annotation, optimizer, device, periodicity, window.",
    ),
    Column(
        "mark",
        pl.String,
        "name",
        "The name of the slice that marks the step; null for a window.",
        True,
    ),
    Column(
        "note", pl.String, "sentence", "Why medians do not include the step; null if they do.", True
    ),
    Column(
        "excess",
        pl.Int64,
        "ns",
        "Time above the median, of a step that is far longer than the others; null for others.",
        True,
    ),
    Column(
        "longer_in",
        pl.String,
        "name",
        "The time category of such a step that exceeds its own median most.",
        True,
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
    parts = [found.rename({"number": "step"}), step_breakdown(trace), slow_step_excesses(trace)]
    table = pl.concat(parts, how="horizontal")
    return table.select(pl.col(column.name).cast(column.dtype) for column in steps.columns)
