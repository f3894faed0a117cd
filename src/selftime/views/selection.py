"""Statistics of the slices in a time range, on selected tracks."""

from typing import Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.timeline import select_time_window, select_tracks
from selftime.array_types import Ints
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import RowLimit, view

_GROUPING_COLUMNS_BY_OPTION: Final = {
    "name": ("name", "category"),
    "category": ("category",),
    "track": ("track",),
}
"""Maps each value of the option `by` to the columns by which slices are grouped into rows."""
_LABEL_OF_ROW_WITH_ALL_SLICES: Final = "all"
_SLICE_COLUMNS_READ: Final = ("id", "category", "name", "track", "start", "depth", "self")
"""The columns of the table of slices that the view reads."""


@view(
    Column(
        "what",
        pl.String,
        "name",
        "The name, category or track of the row's slices; `all` in the first row.",
    ),
    Column(
        "category",
        pl.String,
        "name",
        "The category of the slices in the trace; null if several.",
        True,
    ),
    Column(
        "self",
        pl.Int64,
        "ns",
        "Time in which a slice of the row was the innermost slice of its track.",
    ),
    Column("busy", pl.Int64, "ns", "Time in which at least one slice of the row was running."),
    Column(
        "share",
        pl.Float64,
        "ratio",
        "The row's busy time as a share of the length of the time range.",
    ),
    Column(
        "total", pl.Int64, "ns", "Sum of the durations of the row's slices within the time range."
    ),
    Column("count", pl.Int64, "count", "The number of slices in the row."),
    Column(
        "longest", pl.Int64, "ns", "The duration of the row's longest slice within the time range."
    ),
    Column(
        "track", pl.UInt32, "id", "The id of the track of the row's slices; null if several.", True
    ),
    Column("start", pl.Int64, "instant", "When the row's longest slice began."),
    Column("id", pl.UInt32, "id", "The id of the row's longest slice."),
)
def selection(
    trace: Trace,
    *,
    start: int = 0,
    end: int = 0,
    tracks: str = "",
    by: Literal["name", "category", "track"] = "name",
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Statistics of the slices between two instants: a row for all, then groups by self time.

    `start` and `end` are ns from the trace's origin; an `end` of 0 is the trace's end. Slices that
    extend beyond them are clipped. `tracks` keeps tracks by number or kind, joined by commas. `by`
    groups slices by name and category, category, or track; `top` keeps that many rows besides the
    row of all, 0 every one.
    """
    begin, until = select_time_window(trace, start, end)
    ids, _ = select_tracks(trace, tracks)
    inside = _slices_clipped_to_time_range(trace, begin, until, pl.Series(ids))
    if not inside.height:
        return pl.DataFrame(schema={c.name: c.dtype for c in selection.columns})
    whole = _sum_slices_by_keys(inside, []).with_columns(what=pl.lit(_LABEL_OF_ROW_WITH_ALL_SLICES))
    rows = _sum_slices_by_keys(inside, list(_GROUPING_COLUMNS_BY_OPTION[by]))
    if by == "track":
        rows = rows.drop("category").join(_track_labels(trace), on="track", maintain_order="left")
    else:
        rows = rows.with_columns(what=pl.col(by).cast(pl.String))
    rows = rows.sort("self", "total", "id", descending=[True, True, False])
    rows = rows.head(top) if top else rows
    share = pl.col("busy") / (until - begin)
    return pl.concat(
        [_with_all_view_columns(one.with_columns(share=share)) for one in (whole, rows)]
    )


def _slices_clipped_to_time_range(
    trace: Trace, begin: int, until: int, tracks: pl.Series
) -> pl.DataFrame:
    """Returns the slices on some tracks, with start, end and self time (ns) clipped to a range.

    Columns: id, name, category, track, begun (as recorded), start, end, self.
    """
    length = slice_durations_without_impossible(trace).fill_null(0)
    asked = trace.slices.select(_SLICE_COLUMNS_READ).with_columns(finish=pl.col("start") + length)
    is_inside = asked.select(
        (pl.col("start") < until)
        & ((pl.col("finish") > begin) | ((pl.col("start") >= begin) & (length == 0)))
        & pl.col("track").is_in(tracks.implode())
    ).to_series()
    slices = asked if is_inside.all() else asked.filter(is_inside)
    is_cut = ((slices["start"] < begin) | (slices["finish"] > until)).arg_true()
    own = pl.min_horizontal(pl.col("self").fill_null(0), pl.col("finish") - pl.col("start"))
    cut = slices.with_columns(
        own.alias("self"),
        begun=pl.col("start"),
        start=pl.col("start").clip(lower_bound=begin),
        end=pl.col("finish").clip(upper_bound=until),
    )
    innermost = pl.Series(_innermost_times_ns(cut, is_cut.to_list()), dtype=pl.Int64)
    return cut.with_columns(cut["self"].scatter(is_cut, innermost))


def _innermost_times_ns(slices: pl.DataFrame, clipped: list[int]) -> list[int]:
    """Returns the time (ns) in which each clipped slice was the innermost of its track."""
    track = slices["track"].to_numpy()
    begun, depth = slices["begun"].to_numpy(), slices["depth"].to_numpy()
    start, end = slices["start"].to_numpy(), slices["end"].to_numpy()
    found = []
    for one in clipped:
        later = (begun > begun[one]) | ((begun == begun[one]) & (depth > depth[one]))
        mine = later & (track == track[one]) & (start < end[one])
        covered = _time_covered_by_intervals_ns(start[mine], np.minimum(end[mine], end[one]))
        found.append(int(end[one] - start[one]) - covered)
    return found


def _time_covered_by_intervals_ns(start: Ints, end: Ints) -> int:
    """Returns the total time (ns) covered by intervals, which are sorted by start."""
    if not start.size:
        return 0
    reach = np.maximum.accumulate(end)
    before = np.append(start[0], reach[:-1])
    return int(np.maximum(reach - np.maximum(start, before), 0).sum())


def _sum_slices_by_keys(slices: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Returns statistics of slices for each value of the `keys`; without keys, one row for all."""
    length = pl.col("end") - pl.col("start")
    reached = pl.col("end").cum_max().shift(1)
    fresh = pl.col("end") - pl.max_horizontal("start", reached.over(keys) if keys else reached)
    alone = [name for name in ("category", "track") if name not in keys]
    sums = [
        pl.col("self").sum(),
        pl.col("fresh").sum().alias("busy"),
        pl.col("length").sum().alias("total"),
        pl.len().alias("count"),
        pl.col("length").max().alias("longest"),
        pl.col("begun").get(pl.col("length").arg_max()).alias("start"),
        pl.col("id").get(pl.col("length").arg_max()),
        *(
            pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name)
            for name in alone
        ),
    ]
    timed = slices.with_columns(fresh=pl.max_horizontal(fresh, 0), length=length)
    return timed.group_by(keys, maintain_order=True).agg(sums) if keys else timed.select(sums)


def _track_labels(trace: Trace) -> pl.DataFrame:
    """Returns a table with the label and the kind of each track."""
    return trace.tracks.select(
        track="id",
        what=pl.coalesce("name", pl.col("tid").replace("", None), "process"),
        category=pl.col("kind").cast(pl.String),
    )


def _with_all_view_columns(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col(c.name).cast(c.dtype) for c in selection.columns)
