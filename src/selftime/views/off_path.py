"""Work of devices that is not on the critical path, by kernel."""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.device.device_work import device_work
from selftime.analysis.graph.critical_path_steps import (
    critical_path_of_chosen_steps,
    spans_of_chosen_steps,
)
from selftime.intervals import covered_time_before, union
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import RowLimit, view

_KIND_OF_WORK: Final = {
    "kernel": "compute",
    "communication": "communication",
    "memcpy": "copy",
    "memset": "copy",
}
"""Maps the kind of device work to the kind of path segment that it is."""


@view(
    Column("kind", pl.String, "name", "What the work is: compute, communication or copy."),
    Column("name", NameType, "name", "The kernel, copy or fill."),
    Column("time", pl.Int64, "ns", "Time of the work that is not on the critical path."),
    Column("share", pl.Float64, "ratio", "`time` divided by the time of all work off the path."),
    Column("on_path", pl.Int64, "ns", "Time of the same work that is on the critical path."),
    Column("off_share", pl.Float64, "ratio", "The part of the row's work that is off the path."),
    Column("count", pl.Int64, "count", "The number of times that the work ran, in part off it."),
    Column("longest", pl.UInt32, "id", "The slice id of the work with most time off the path."),
    Column("start", pl.Int64, "instant", "When the work with most time off the path begins."),
    needs=("device",),
    sums=("time", "on_path", "count"),
)
def off_path(trace: Trace, *, step: str = "", top: RowLimit = 0) -> pl.DataFrame:
    """Work of devices that is not on the critical path of the steps, most time first.

    It ran beside the path: it could have taken longer without slowing the step, as long as it does
    not get onto the path, and making it faster gains nothing by itself. Work counts in as far as it
    ran within the steps. `step` is the number of a step, `typical` for the counted step of median
    time, or `all` for all that are recorded; without it the steps that count. `top` keeps the first
    rows; 0 keeps all.
    """
    spans = spans_of_chosen_steps(trace, step)
    work = device_work(trace).select("id", "name", "kind", "start", "end")
    if not spans.height or not work.height:
        return off_path.table_of(pl.DataFrame())
    inside = union(spans["begin"].to_numpy(), spans["done"].to_numpy())
    within = covered_time_before(inside, work["end"].to_numpy()) - covered_time_before(
        inside, work["start"].to_numpy()
    )
    path = critical_path_of_chosen_steps(trace, step)
    path = path.filter(pl.col("kind").cast(pl.String).is_in(list(_KIND_OF_WORK.values())))
    on_path = np.zeros(trace.slices.height, np.int64)
    segment = path.drop_nulls("slice")
    np.add.at(on_path, segment["slice"].to_numpy(), (segment["end"] - segment["start"]).to_numpy())
    own = on_path[work["id"].to_numpy()]
    rows = work.with_columns(time=np.maximum(within - own, 0), on_path=own)
    longest = pl.col("id").sort_by("time", descending=True).first()
    table = (
        rows.with_columns(pl.col("kind").cast(pl.String).replace(_KIND_OF_WORK))
        .group_by("kind", "name", maintain_order=True)
        .agg(
            pl.col("time", "on_path").sum(),
            longest.alias("longest"),
            pl.col("start").sort_by("time", descending=True).first(),
            count=(pl.col("time") > 0).sum(),
        )
        .filter(pl.col("time") > 0)
        .sort("time", descending=True, maintain_order=True)
    )
    table = table.with_columns(
        share=pl.col("time") / max(int(table["time"].sum()), 1),
        off_share=pl.col("time") / (pl.col("time") + pl.col("on_path")),
    )
    table = off_path.table_of(table)
    return table.head(top) if top else table
