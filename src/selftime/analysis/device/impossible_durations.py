"""Finds device slices that last far longer than usual and past the end of a host wait for them.

Work of one stream runs in order, and a wait for the device returns when all work launched before it
is done. If a slice lasts beyond either, and also far longer than other work of its name, its
recorded end is wrong. One of the two alone may be legal overlap or clocks that differ.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.slice_filters import filter_by_name
from selftime.array_types import Ints

CLOCK_TOLERANCE_NS: Final = 1_000_000
"""Largest difference between the clocks of host and device that is not taken for an error, in ns.
"""
_IMPOSSIBLE_DURATION_FACTOR: Final = 10
"""A slice that lasts more than this many times the median of its name may have a wrong duration."""
_UNKNOWN_TYPICAL_DURATION_NS: Final = np.iinfo(np.int64).max // _IMPOSSIBLE_DURATION_FACTOR


def device_slices_with_impossible_duration(
    work: pl.DataFrame, calls: pl.DataFrame, recorder_end_ns: int | None
) -> pl.DataFrame:
    """Returns the device slices that cannot have lasted as long as recorded.

    Args:
        work: Device slices, as from `device_work_as_recorded`.
        calls: Calls of the runtime and driver, with the columns of `slices`; those that satisfy
            `is_call_bounding_work_ends` suffice.
        recorder_end_ns: When the recorder stopped, in ns; nothing that it recorded can end later.
    """
    if not work.height:
        return work
    found = work[
        "duration"
    ].to_numpy() > _IMPOSSIBLE_DURATION_FACTOR * _typical_durations_of_device_work(work, calls)
    if found.any():
        found &= _outlasts_later_work_of_stream(work) | (
            device_slice_overruns_of_waits(work, calls) > CLOCK_TOLERANCE_NS
        )
    if recorder_end_ns is not None:
        found |= work["end"].to_numpy() > recorder_end_ns + CLOCK_TOLERANCE_NS
    return work.filter(pl.Series(found)).sort("track", "start", "end", "id")


def is_call_bounding_work_ends(call_name: str) -> bool:
    """Returns whether a call limits how late earlier work ended: a wait or a CUDA graph launch."""
    return _is_call_waiting_for_device(call_name) or names.is_graph_launch(call_name)


def _is_call_waiting_for_device(call_name: str) -> bool:
    return names.blocking_call_target(call_name) == "device"


def latest_possible_ends(
    work: pl.DataFrame,
    impossible_slices: pl.DataFrame,
    calls: pl.DataFrame,
    recorder_end_ns: int | None,
) -> pl.DataFrame:
    """Returns the id and latest possible end (ns) of each slice of impossible duration.

    That is when later work of the stream began, a wait for the device returned, or the recorder
    stopped, whichever came first. `impossible_slices` are the impossible slices; the other
    arguments are those of `device_slices_with_impossible_duration`.
    """
    if not impossible_slices.height:
        return impossible_slices.select("id", "end")
    tracks = impossible_slices["track"].unique()
    beside = work.select("id", "track", "start", "end").filter(
        work["track"].is_in(tracks.implode())
    )
    following = beside.sort("track", "start", "end", "id").select(
        "id", after=pl.col("start").shift(-1).over("track")
    )
    waited = work.select(
        "id", waited=pl.col("end") - pl.Series(device_slice_overruns_of_waits(work, calls))
    )
    waited = waited.filter(pl.col("id").is_in(impossible_slices["id"].implode()))
    return (
        impossible_slices.join(following, on="id", how="left")
        .join(waited, on="id", how="left")
        .select(
            "id",
            end=pl.max_horizontal(
                "start", pl.min_horizontal("end", "after", "waited", pl.lit(recorder_end_ns))
            ),
        )
    )


def device_slice_overruns_of_waits(work: pl.DataFrame, calls: pl.DataFrame) -> Ints:
    """Returns by how many ns each device slice ends after the host's first wait for it; else 0.

    It is 0 for slices that outlast none, and where several devices make it unknown which one the
    wait was for.
    """
    over = np.zeros(work.height, np.int64)
    waits = filter_by_name(calls, _is_call_waiting_for_device)
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


def _typical_durations_of_device_work(work: pl.DataFrame, calls: pl.DataFrame) -> Ints:
    """Returns each device slice's typical duration (ns): the median of its name, else of its track.

    A name must occur at least twice. Work that occurs once in a graph replay has no typical
    duration, because branches of a graph share a stream.
    """
    middle = pl.col("duration").quantile(0.5, interpolation="lower")
    told = work.select(
        own=middle.over("name"), count=pl.len().over("name"), track=middle.over("track")
    )
    graphs = filter_by_name(calls, names.is_graph_launch)["id"]
    replayed = work["launch"].is_in(graphs.implode()).fill_null(value=True)
    once = pl.when(pl.lit(replayed)).then(None).otherwise("track")
    typical = told.select(pl.when(pl.col("count") > 1).then("own").otherwise(once)).to_series()
    return typical.cast(pl.Int64).fill_null(_UNKNOWN_TYPICAL_DURATION_NS).to_numpy()


def _outlasts_later_work_of_stream(work: pl.DataFrame) -> NDArray[np.bool_]:
    """Flags device work that ended after the end of work that began later on its stream."""
    soonest = pl.col("end").reverse().cum_min().reverse().shift(-1).over("track")
    order = work.select(pl.arg_sort_by("track", "start", "end", "id")).to_series()
    ends = work.select("track", "end")[order].select("end", soonest=soonest)
    past = ends["end"] > ends["soonest"].fill_null(np.iinfo(np.int64).max)
    found = np.zeros(work.height, bool)
    found[order.to_numpy()] = past.to_numpy()
    return found
