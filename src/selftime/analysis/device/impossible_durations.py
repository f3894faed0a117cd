"""Durations that cannot be: far longer than their like and past what had to wait for them.

Work of one stream runs in order, and a wait for the device returns when all work launched before
it is done. Work that lasts beyond either has no true end, if it also lasts far longer than other
work of its name; alone, either may be legal overlap or clocks that disagree.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.slice_filters import filter_by_name
from selftime.arrays import Ints

SLACK: Final = 1_000_000
"""Clocks of host and device may disagree by up to 1 ms."""
_FAR_LONGER: Final = 10
"""An order of magnitude: work of one name varies less with its shapes and clocks."""
_NEVER: Final = np.iinfo(np.int64).max // _FAR_LONGER


def impossible(work: pl.DataFrame, calls: pl.DataFrame, end: int | None) -> pl.DataFrame:
    """The device slices whose duration cannot be.

    Args:
        work: Device slices, as `recorded_work` has them.
        calls: Calls of the runtime and driver, columns of `slices`; those that `tells_of_ends`
            means are enough.
        end: When the recorder stopped, in ns; none of its records ends later.
    """
    if not work.height:
        return work
    found = work["duration"].to_numpy() > _FAR_LONGER * _typical(work, calls)
    if found.any():
        found &= _past_later_work(work) | (overruns(work, calls) > SLACK)
    if end is not None:
        found |= work["end"].to_numpy() > end + SLACK
    return work.filter(pl.Series(found)).sort("track", "start", "end", "id")


def tells_of_ends(name: str) -> bool:
    """Whether a call says when work was done, or that it was a graph's."""
    return _waits_for_device(name) or names.is_graph_launch(name)


def _waits_for_device(name: str) -> bool:
    return names.waits_for(name) == "device"


def possible_ends(
    work: pl.DataFrame, found: pl.DataFrame, calls: pl.DataFrame, end: int | None
) -> pl.DataFrame:
    """When the impossible ones can have ended at the latest: columns id and end, in ns.

    That is when later work of the stream began, a wait for the device returned, or the recorder
    stopped, whichever was first. `found` are these; the other arguments are those of `impossible`.
    """
    if not found.height:
        return found.select("id", "end")
    tracks = found["track"].unique()
    beside = work.select("id", "track", "start", "end").filter(
        work["track"].is_in(tracks.implode())
    )
    following = beside.sort("track", "start", "end", "id").select(
        "id", after=pl.col("start").shift(-1).over("track")
    )
    waited = work.select("id", waited=pl.col("end") - pl.Series(overruns(work, calls)))
    waited = waited.filter(pl.col("id").is_in(found["id"].implode()))
    return (
        found.join(following, on="id", how="left")
        .join(waited, on="id", how="left")
        .select(
            "id",
            end=pl.max_horizontal(
                "start", pl.min_horizontal("end", "after", "waited", pl.lit(end))
            ),
        )
    )


def overruns(work: pl.DataFrame, calls: pl.DataFrame) -> Ints:
    """By how many ns each work outlasts the first wait for its device that began after its launch.

    0 where none did, or where several devices make it unknown which one was waited for.
    """
    over = np.zeros(work.height, np.int64)
    waits = filter_by_name(calls, _waits_for_device)
    waits = waits.filter(pl.col("duration").is_not_null()).sort("start")
    if not waits.height or work["device"].n_unique() > 1:
        return over
    begins = waits["start"].to_numpy()
    ends = begins + waits["duration"].to_numpy()
    launched = work["launched"].fill_null(np.iinfo(np.int64).max).to_numpy()
    at = np.searchsorted(begins, launched, side="right")
    known = at < begins.size
    over[known] = np.maximum(work["end"].to_numpy()[known] - ends[at[known]], 0)
    return over


def _typical(work: pl.DataFrame, calls: pl.DataFrame) -> Ints:
    """The lower median duration of the work of the same name, of two or more; else of the track.

    What came once in a replay of a graph has no like: branches of a graph share a stream.
    """
    middle = pl.col("duration").quantile(0.5, interpolation="lower")
    told = work.select(
        own=middle.over("name"), count=pl.len().over("name"), track=middle.over("track")
    )
    graphs = filter_by_name(calls, names.is_graph_launch)["id"]
    replayed = work["launch"].is_in(graphs.implode()).fill_null(value=True)
    once = pl.when(pl.lit(replayed)).then(None).otherwise("track")
    typical = told.select(pl.when(pl.col("count") > 1).then("own").otherwise(once)).to_series()
    return typical.cast(pl.Int64).fill_null(_NEVER).to_numpy()


def _past_later_work(work: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether work that began later on its stream ended before it."""
    soonest = pl.col("end").reverse().cum_min().reverse().shift(-1).over("track")
    order = work.select(pl.arg_sort_by("track", "start", "end", "id")).to_series()
    ends = work.select("track", "end")[order].select("end", soonest=soonest)
    past = ends["end"] > ends["soonest"].fill_null(np.iinfo(np.int64).max)
    found = np.zeros(work.height, bool)
    found[order.to_numpy()] = past.to_numpy()
    return found
