"""What each line of the user's source costs."""

import json
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.accounts.charges import charges
from selftime.views.accounts.charges import within as inside
from selftime.views.accounts.grouping import source_lines
from selftime.views.accounts.judging import counted_windows, is_within, judged_steps
from selftime.views.accounts.named import of_kind, whose_name
from selftime.views.base import view

__all__ = ["lines"]

_KEYS: Final = ("file", "line", "function", "how")


@view(
    Column("file", pl.String, "text", "The source file; null where the line is not known.", True),
    Column("line", pl.Int32, "id", "The line, from 1.", True),
    Column("function", pl.String, "name", "The function it is in.", True),
    Column("how", pl.String, "name", "How it is known: stack (executing) or definition.", True),
    Column("operators", pl.Int64, "count", "Operators, annotations and calls that it ran."),
    Column("self_cpu_time", pl.Int64, "ns", "Host time of those, each less what ran within."),
    Column("device_time", pl.Int64, "ns", "Device time that they launched."),
    Column("first", pl.Int64, "instant", "When it ran first."),
    Column(
        "since_batch", pl.Int64, "ns", "Least time to it from a batch's loading, or a step.", True
    ),
)
def lines(
    trace: Trace, *, dtype: str = "", within: str = "", counted: bool = False, top: int = 0
) -> pl.DataFrame:
    """Host and device time by source line, most device time first, then host time.

    Backward operators count to the line of their forward operator. `dtype` keeps operators that
    compute in that dtype: all their inputs of a floating dtype that have dimensions are of it.
    `within` keeps what ran inside slices whose name begins so, `counted` what ran in the steps that
    count for medians, `top` the first rows; 0 keeps all.
    """
    host = charges(trace)
    ids = pl.Series("id", host.id, dtype=pl.UInt32)
    events = (
        source_lines(trace, ids)
        .select("id", *_KEYS)
        .with_columns(
            self_cpu_time=host.self_cpu,
            device_time=host.self_device,
            first=trace.slices["start"].gather(ids),
            since_batch=_since_batch(trace, ids),
        )
    )
    chosen = inside(host, within)
    if dtype:
        chosen &= _computes_in(trace, ids, dtype)
    if counted:
        chosen &= is_within(events["first"].to_numpy(), counted_windows(trace))
    rows = (
        events.filter(pl.Series(chosen))
        .group_by(_KEYS)
        .agg(
            pl.len().cast(pl.Int64).alias("operators"),
            pl.col("self_cpu_time", "device_time").sum(),
            pl.col("first", "since_batch").min(),
        )
        .sort("device_time", "self_cpu_time", "file", "line", descending=[True, True, False, False])
        .select(pl.col(column.name).cast(column.dtype) for column in lines.columns)
    )
    return rows.head(top) if top > 0 else rows


def _since_batch(trace: Trace, ids: pl.Series) -> pl.Series:
    """Time from the last begin of data loading to each slice; from the last step without loading.

    A step that ends with the optimizer begins with the end of the loop's body: the program's own
    begin is where it takes a batch.
    """
    loading = whose_name(of_kind(trace, "host"), names.is_data_loading)["start"]
    begins = (loading if loading.len() else judged_steps(trace)["start"]).sort().to_numpy()
    start = trace.slices["start"].gather(ids).to_numpy()
    at = np.searchsorted(begins, start, side="right") - 1
    since = pl.Series(start - begins[at] if begins.size else start)
    return since.set(pl.Series((at < 0) | (not begins.size)), None)


def _computes_in(trace: Trace, ids: pl.Series, dtype: str) -> NDArray[np.bool_]:
    """Which slices are library operators that compute in that dtype."""
    asked = pl.DataFrame({"id": ids, "name": trace.slices["name"].gather(ids)})
    told = asked.join(
        trace.op_args.select("id", "input_types", "input_shapes"),
        on="id",
        how="left",
        maintain_order="left",
    )
    keys = ["name", "input_types", "input_shapes"]
    distinct = told.select(keys).unique()
    answers = [
        names.is_library_operator(name) and _is_all(types, shapes, dtype)
        for name, types, shapes in distinct.cast(pl.String).iter_rows()
    ]
    table = distinct.with_columns(has=pl.Series(answers, dtype=pl.Boolean))
    found = told.join(table, on=keys, how="left", nulls_equal=True, maintain_order="left")["has"]
    return found.fill_null(value=False).to_numpy()


def _is_all(types: str | None, shapes: str | None, dtype: str) -> bool:
    """Whether there are floating inputs with dimensions, and all are of the dtype."""
    if not types or not shapes:
        return False
    try:
        pairs = list(zip(json.loads(types), json.loads(shapes), strict=True))
    except (ValueError, TypeError):
        return False  # types that do not belong to the shapes tell nothing
    floating = {kind for kind, shape in pairs if shape and kind in names.FLOATING}
    return floating == {dtype}
