"""What a stretch of time went into, on the tracks that were chosen."""

from typing import Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.device.work import device_durations
from selftime.analysis.timeline import chosen_time, chosen_tracks
from selftime.arrays import Ints
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import Top, view

_KEYS: Final = {"name": ("name", "category"), "category": ("category",), "track": ("track",)}
"""What rows are told apart by."""
_ALL: Final = "all"
_READ: Final = ("id", "category", "name", "track", "start", "depth", "self")
"""Columns of slices that are asked for."""


@view(
    Column("what", pl.String, "name", "Name, category or track; the first row is all of them."),
    Column("category", pl.String, "name", "Kind of event, if all are of one; of a track.", True),
    Column("self", pl.Int64, "ns", "Time in which one of them was the innermost of its track."),
    Column("busy", pl.Int64, "ns", "Time in which one of them was open: their union."),
    Column("share", pl.Float64, "ratio", "The busy time's share of the stretch."),
    Column("total", pl.Int64, "ns", "Sum of their durations within the stretch."),
    Column("count", pl.Int64, "count", "How many there are."),
    Column("longest", pl.Int64, "ns", "The longest, within the stretch."),
    Column("track", pl.UInt32, "id", "The track, if all lie on one.", True),
    Column("start", pl.Int64, "instant", "When the longest began."),
    Column("id", pl.UInt32, "id", "The slice of the longest."),
)
def selection(
    trace: Trace,
    *,
    start: int = 0,
    end: int = 0,
    tracks: str = "",
    by: Literal["name", "category", "track"] = "name",
    top: Top = 0,
) -> pl.DataFrame:
    """Statistics of what lies between two instants, most self time first, under a row of all.

    `start` and `end` are ns from the trace's origin, an `end` of 0 is the trace's. Of slices that
    reach beyond them only what lies between counts. `tracks` keeps numbers and kinds of tracks,
    joined by commas. `by` tells slices apart by name and category, category, or track; `top` keeps
    so many rows besides that of all, 0 every one.
    """
    begin, until = chosen_time(trace, start, end)
    ids, _ = chosen_tracks(trace, tracks)
    inside = _inside(trace, begin, until, pl.Series(ids))
    if not inside.height:
        return pl.DataFrame(schema={c.name: c.dtype for c in selection.columns})
    whole = _summed(inside, []).with_columns(what=pl.lit(_ALL))
    rows = _summed(inside, list(_KEYS[by]))
    if by == "track":
        rows = rows.drop("category").join(_labels(trace), on="track", maintain_order="left")
    else:
        rows = rows.with_columns(what=pl.col(by).cast(pl.String))
    rows = rows.sort("self", "total", "id", descending=[True, True, False])
    rows = rows.head(top) if top else rows
    share = pl.col("busy") / (until - begin)
    return pl.concat([_declared(one.with_columns(share=share)) for one in (whole, rows)])


def _inside(trace: Trace, begin: int, until: int, tracks: pl.Series) -> pl.DataFrame:
    """The slices open between, cut to it, in order of time; `self` within it.

    Columns: id, name, category, track, begun (as written), start, end, self.
    """
    length = device_durations(trace).fill_null(0)
    asked = trace.slices.select(_READ).with_columns(finish=pl.col("start") + length)
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
    innermost = pl.Series(_innermost(cut, is_cut.to_list()), dtype=pl.Int64)
    return cut.with_columns(cut["self"].scatter(is_cut, innermost))


def _innermost(slices: pl.DataFrame, these: list[int]) -> list[int]:
    """Time in which these slices, cut as they are, have none within that began later."""
    track = slices["track"].to_numpy()
    begun, depth = slices["begun"].to_numpy(), slices["depth"].to_numpy()
    start, end = slices["start"].to_numpy(), slices["end"].to_numpy()
    found = []
    for one in these:
        later = (begun > begun[one]) | ((begun == begun[one]) & (depth > depth[one]))
        mine = later & (track == track[one]) & (start < end[one])
        covered = _covered(start[mine], np.minimum(end[mine], end[one]))
        found.append(int(end[one] - start[one]) - covered)
    return found


def _covered(start: Ints, end: Ints) -> int:
    """Time that intervals cover, which are ordered by start."""
    if not start.size:
        return 0
    reach = np.maximum.accumulate(end)
    before = np.append(start[0], reach[:-1])
    return int(np.maximum(reach - np.maximum(start, before), 0).sum())


def _summed(slices: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Sums over the slices of the same keys, of all without; `busy` is their union's length."""
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


def _labels(trace: Trace) -> pl.DataFrame:
    """The name of each track and its kind."""
    return trace.tracks.select(
        track="id",
        what=pl.coalesce("name", pl.col("tid").replace("", None), "process"),
        category=pl.col("kind").cast(pl.String),
    )


def _declared(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col(c.name).cast(c.dtype) for c in selection.columns)
