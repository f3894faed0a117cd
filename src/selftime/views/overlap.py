"""What devices did at the same time: compute, communication, copies, and parallel streams."""

from typing import Literal

import polars as pl

from selftime.analysis.device.work_overlap import overlap_of_stream_pairs, overlap_of_work_kinds
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


@view(
    Column(
        "device",
        pl.Int32,
        "id",
        "The number of the device; null for the host, or without a number.",
        True,
    ),
    Column("step", pl.Int64, "id", "The number of the step; null if not by step.", True),
    Column("window", pl.Int64, "ns", "The length of the observed time range."),
    Column(
        "compute",
        pl.Int64,
        "ns",
        "Time in which the device ran a kernel other than a collective.",
        True,
    ),
    Column(
        "exposed_communication",
        pl.Int64,
        "ns",
        "Time in which the device ran a collective, and no other kernel.",
        True,
    ),
    Column(
        "exposed_copies",
        pl.Int64,
        "ns",
        "Time in which the device ran a copy or fill, and no kernel or collective.",
        True,
    ),
    Column(
        "idle",
        pl.Int64,
        "ns",
        "Time in which the device ran no kernel, collective, copy or fill.",
        True,
    ),
    Column(
        "communication",
        pl.Int64,
        "ns",
        "Time in which the device ran a collective, overlaps included.",
        True,
    ),
    Column(
        "hidden_share",
        pl.Float64,
        "ratio",
        "The share of `communication` during which other kernels ran.",
        True,
    ),
    Column(
        "copies",
        pl.Int64,
        "ns",
        "Time in which the device ran a copy or fill, overlaps included.",
        True,
    ),
    Column(
        "compute_alone",
        pl.Int64,
        "ns",
        "Time in which the device ran a kernel, but no collective, copy or fill.",
        True,
    ),
    Column(
        "overlapped",
        pl.Int64,
        "ns",
        "Time in which the device ran two or all of compute, collectives and copies at once.",
        True,
    ),
    Column(
        "concurrent",
        pl.Int64,
        "ns",
        "Time in which two or more streams worked at once; for a pair, in which both did.",
        True,
    ),
    Column("streams", pl.Int64, "count", "The number of the device's streams that had work.", True),
    Column(
        "stream",
        pl.Int64,
        "id",
        "The first stream of the pair; null unless `by` is `streams`.",
        True,
    ),
    Column(
        "other",
        pl.Int64,
        "id",
        "The second stream of the pair; null unless `by` is `streams`.",
        True,
    ),
)
def overlap(trace: Trace, *, by: Literal["device", "step", "streams"] = "device") -> pl.DataFrame:
    """Compute, communication and copies of each device: time of each alone, and time in parallel.

    All are lengths of time, not sums of durations. Compute, exposed communication, exposed copies
    and idle add up to the window: from the begin of the first step until the last step and its
    device work are done. `by` gives a row per step, from when the previous one was done, or per
    pair of streams that worked at the same time.

    Where a trace has no device work, the host's operators are compute, and its collectives are
    communication; idle is the rest. Where work was launched but none was recorded, values are null.
    """
    if by == "streams":
        return overlap.table_of(overlap_of_stream_pairs(trace))
    return overlap.table_of(overlap_of_work_kinds(trace, by_step=by == "step"))
