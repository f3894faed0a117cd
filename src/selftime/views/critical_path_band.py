"""The critical path in order of time, on the threads and streams that it runs over."""

import polars as pl

from selftime.analysis.graph.critical_path_steps import (
    critical_path_of_chosen_steps,
    segments_by_pixel,
    with_lanes,
)
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import Nanoseconds, Pixels, view


@view(
    Column("start", pl.Int64, "instant", "When the first segment of the row begins."),
    Column(
        "duration", pl.Int64, "ns", "From when the first segment begins to when the last one ends."
    ),
    Column("lane", pl.String, "name", "The thread or stream that runs it, or `waiting`."),
    Column(
        "kind",
        pl.String,
        "name",
        "The kind of segment, as in `critical_path`: of several, the one with most time.",
    ),
    Column(
        "name",
        NameType,
        "name",
        "The kernel, operator or frame; for a wait, the work that began late; of several, the "
        "longest.",
        True,
    ),
    Column("time", pl.Int64, "ns", "Time that the row's segments take on the critical path."),
    Column("count", pl.Int64, "count", "The number of segments that are one row."),
    Column("link", pl.String, "name", "Why the longest segment began, such as launch.", True),
    Column("step", pl.Int64, "id", "The number of the step.", True),
    Column("longest", pl.UInt32, "id", "The slice id of the longest segment.", True),
    sums=("time", "count"),
)
def critical_path_band(
    trace: Trace,
    *,
    step: str = "typical",
    start: Nanoseconds = 0,
    end: Nanoseconds = 0,
    pixels: Pixels = 1000,
) -> pl.DataFrame:
    """The critical path in order of time, on the threads and streams that it runs over.

    The segments are those of `critical_path`. Segments narrower than a pixel are merged where they
    are on one lane and begin in the same pixel, so that there are at most twice as many rows as
    `pixels` for each lane, however many segments there are. `step` is the number of a step, `all`
    for all that are recorded, or `typical` for the counted step of median time. `start` and `end`
    cut out a part; 0 leaves the begin and end of the steps.
    """
    found = critical_path_of_chosen_steps(trace, step)
    if not found.height:
        return critical_path_band.table_of(pl.DataFrame())
    first, last = int(found["start"].min()), int(found["end"].max())  # type: ignore[arg-type]  # whole numbers
    rows = segments_by_pixel(
        with_lanes(trace, found), begin=start or first, end=end or last, pixels=pixels
    )
    rows = rows.rename({"slice": "longest"}).with_columns(duration=pl.col("end") - pl.col("start"))
    return critical_path_band.table_of(rows)
