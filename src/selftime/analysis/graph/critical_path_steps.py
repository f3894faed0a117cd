"""Chooses the steps whose critical path is told, and cuts a path to the pixels of a picture."""

from typing import Final

import polars as pl

from selftime.analysis.graph.critical_path import critical_path_segments
from selftime.analysis.slice_occurrences import thread_device_stream_columns
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.errors import UsageError
from selftime.trace import Trace

COUNTED_STEPS: Final = ""
ALL_STEPS: Final = "all"
TYPICAL_STEP: Final = "typical"
WAIT_LANE: Final = "waiting"
"""The lane of the path's waits: of a device for work, of the host for data."""
_UNKNOWN_LANE: Final = "host"
"""The lane of what the host did while no slice of it is recorded."""
_ONE_DEVICE_AND_HOST: Final = 2
_WAIT_KINDS: Final = ("latency", "data", "unknown")
_HOST_KINDS: Final = ("host", "gc")


def spans_of_chosen_steps(trace: Trace, step: str) -> pl.DataFrame:
    """Returns number, begin and done (ns) of the steps that the option `step` chooses."""
    steps = steps_with_counted_flags(trace).select("number", "begin", "done", "counted")
    counted = steps.filter("counted") if steps["counted"].any() else steps
    if step == COUNTED_STEPS:
        return counted.drop("counted")
    if step == ALL_STEPS:
        return steps.drop("counted")
    if step == TYPICAL_STEP:
        time = pl.col("done") - pl.col("begin")
        distance = (time - time.median()).abs()
        return counted.filter(pl.int_range(pl.len()) == distance.arg_min()).drop("counted")
    found = steps.filter(pl.col("number").cast(pl.String) == step)
    if not found.height:
        known = steps["number"].to_list()
        numbers = f" or one of {min(known)} to {max(known)}" if known else ""
        raise UsageError(
            f"there is no step `{step[:40]}`; write {TYPICAL_STEP}, {ALL_STEPS}{numbers}"
        )
    return found.drop("counted")


def critical_path_of_chosen_steps(trace: Trace, step: str) -> pl.DataFrame:
    """Returns the segments of `critical_path_segments` that are of the chosen steps."""
    chosen = spans_of_chosen_steps(trace, step)["number"]
    found = critical_path_segments(trace)
    return found.filter(pl.col("step").is_in(chosen.implode()))


def with_lanes(trace: Trace, segments: pl.DataFrame) -> pl.DataFrame:
    """Returns the segments with the column lane: the thread or stream they ran on, or waits.

    Parts of the host between slices are on the thread of the host's segment before them.
    """
    known = segments["slice"].is_not_null()
    slices = trace.slices.select("track").with_row_index("id")[segments["slice"].drop_nulls()]
    names, device, _ = thread_device_stream_columns(trace, slices)
    names = names.cast(pl.String)
    if device.n_unique() > _ONE_DEVICE_AND_HOST:
        names = pl.select(
            pl.when(device.is_null())
            .then(names)
            .otherwise(pl.format("{} of device {}", names, device))
        ).to_series()
    lane = pl.Series("lane", [None], dtype=pl.String).new_from_index(0, segments.height)
    named = segments.with_columns(lane=lane.scatter(known.arg_true(), names))
    kind = pl.col("kind").cast(pl.String)
    on_host = pl.when(kind.is_in(_HOST_KINDS)).then("lane").forward_fill().backward_fill()
    return named.with_columns(
        lane=pl.when(kind.is_in(_WAIT_KINDS))
        .then(pl.lit(WAIT_LANE))
        .otherwise(pl.coalesce("lane", on_host, pl.lit(_UNKNOWN_LANE)))
    )


def segments_by_pixel(segments: pl.DataFrame, *, begin: int, end: int, pixels: int) -> pl.DataFrame:
    """Returns the segments between two instants, with those narrower than a pixel merged.

    Narrow segments of one lane that begin in the same pixel are one row: of the kind that takes
    most of it, named after the longest of that kind. So there are at most as many rows as pixels
    for each lane, and as many again.

    Args:
        segments: Segments with the column `lane`.
        begin: When the picture begins, in ns.
        end: When the picture ends, in ns.
        pixels: The width of the picture.
    """
    width = max(end - begin, 1)
    cut = segments.filter((pl.col("end") > begin) & (pl.col("start") < end)).with_columns(
        pl.col("start").clip(begin, end), pl.col("end").clip(begin, end)
    )
    time = (pl.col("end") - pl.col("start")).alias("time")
    cut = cut.with_columns(time).with_row_index("row")
    is_narrow = pl.col("time") * pixels < width
    pixel = (pl.col("start") - begin) * pixels // width
    cut = cut.with_columns(
        pixel=pl.when(is_narrow).then(pixel).otherwise(-1 - pl.col("row").cast(pl.Int64))
    )
    by_kind = pl.col("time").sum().over("pixel", "lane", "kind")
    ordered = cut.with_columns(kind_time=by_kind).sort(
        "kind_time", "time", "start", descending=[True, True, False]
    )
    first = [pl.col(name).first() for name in ("kind", "name", "slice", "link", "step")]
    return (
        ordered.group_by("pixel", "lane", maintain_order=True)
        .agg(
            *first,
            pl.col("start").min(),
            pl.col("end").max(),
            pl.col("time").sum(),
            count=pl.len().cast(pl.Int64),
        )
        .sort("start", "lane")
        .drop("pixel")
    )
