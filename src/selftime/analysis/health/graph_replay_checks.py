"""Checks for replays of CUDA graphs with some or all kernels missing.

Replays of one graph run the same kernels. Where the trace does not number graphs, a replay is
compared with those that contain all of its kernels: graphs repeat exactly, losses do not.
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.health.recording_under_check import (
    HealthCheckResult,
    RecordingUnderCheck,
    counted_noun_text,
    example_slice_ids_text,
    verdict_on_faulty_share,
)
from selftime.analysis.slice_filters import filter_by_name
from selftime.units import count_text, share_text

_MIN_REPLAY_SIMILARITY: Final = 0.8
"""Smallest share of kernel names in common (0 to 1) at which two replays count as one graph's."""
_MAX_DISTINGUISHED_CUDA_GRAPHS: Final = 32
"""Largest number of CUDA graphs that are told apart, largest first; each needs a pass over the
kernels.
"""
_MIN_UNEQUAL_GRAPH_REPLAYS: Final = 3
"""Smallest number of replays of one graph, all different, at which the replays count as incomplete.
"""


def check_incomplete_graph_replays(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Checks that all replays of a CUDA graph have the same device work."""
    launched = filter_by_name(recording.launches, names.is_graph_launch)
    if not launched.height or not recording.device_slices.height:
        return
    held = _kernels_by_graph_replay(recording, launched["id"])
    ids = launched["id"].to_frame("launch")
    counts = ids.join(held, on="launch", how="left").group_by("launch").agg(pl.col("count").sum())
    expected = _expected_slice_counts_of_replays(held, counts)
    told = counts.join(expected, on="launch").sort("launch")
    missing = (told["expected"] - told["count"]).clip(0)
    short = told.filter(missing > 0)
    total = int(told["expected"].sum())
    share = float(missing.sum()) / total if total else 1.0
    text = counted_noun_text(launched.height, "graph replay")
    if not short.height and total:
        yield HealthCheckResult("replays", "good", f"{text}, each with work", 0.0)
        return
    empty = int((told["count"] == 0).sum())
    text = (
        f"of {text} {count_text(short.height or empty)} lack kernels that others of their graph "
        f"have, {count_text(empty)} lack all: at least {share_text(share)} of what they ran "
        "is missing"
    )
    affects = "idle, kernels, device time of steps"
    bad = short if short.height else told
    yield HealthCheckResult(
        "replays",
        verdict_on_faulty_share(share),
        text,
        share,
        affects,
        example_slice_ids_text(bad["launch"]),
    )


def _kernels_by_graph_replay(
    recording: RecordingUnderCheck, replay_launches: pl.Series
) -> pl.DataFrame:
    """Returns one row per replay and kernel name: launch id, name, graph number or null, count."""
    rows = recording.device_slices.select("id", "name", "launch")
    rows = rows.filter(pl.col("launch").is_in(replay_launches.implode()))
    told = recording.trace.device_args.select("id", "graph")
    rows = rows.join(told, on="id", how="left", maintain_order="left")
    return rows.group_by("launch", "graph", "name", maintain_order=True).agg(count=pl.len())


def _expected_slice_counts_of_replays(
    replay_work: pl.DataFrame, counts: pl.DataFrame
) -> pl.DataFrame:
    """Returns for each CUDA graph launch how many device slices it should have (`expected`)."""
    if replay_work.height and not replay_work["graph"].null_count():
        sizes = replay_work.group_by("launch", "graph").agg(pl.col("count").sum())
        whole = sizes.with_columns(expected=pl.col("count").max().over("graph"))
        found = whole.group_by("launch").agg(pl.col("expected").sum())
    else:
        found = _expected_slice_counts_by_similarity(replay_work)
    filled = counts.select("launch").join(found, on="launch", how="left")
    typical = pl.col("expected").median().fill_null(0)  # nothing is known of a replay without work
    return filled.with_columns(pl.col("expected").fill_null(typical).cast(pl.Int64))


def _expected_slice_counts_by_similarity(replay_work: pl.DataFrame) -> pl.DataFrame:
    """Returns the expected slice count of each graph replay, from replays with similar kernels."""
    kernels = replay_work.group_by("launch", "name").agg(pl.col("count").sum())
    kind = pl.struct(pl.col("name").to_physical(), "count").hash(seed=1)
    looks = kernels.group_by("launch", maintain_order=True).agg(
        size=pl.col("count").sum().cast(pl.Int64), look=kind.sort().implode().hash().first()
    )
    looks = looks.with_columns(alike=pl.len().over("look"))
    whole = looks.filter(pl.col("alike") > 1).unique("look", maintain_order=True)
    single = looks.filter(pl.col("alike") == 1)
    if whole.height:
        grown = _sizes_of_smallest_containing_replays(kernels, single, whole)
    else:
        grown = _sizes_of_similar_replay_unions(kernels, single)
    told = looks.join(grown, on="launch", how="left")
    return told.select("launch", expected=pl.max_horizontal("size", "expected"))


def _sizes_of_smallest_containing_replays(
    kernels: pl.DataFrame, unique_replays: pl.DataFrame, repeated_replays: pl.DataFrame
) -> pl.DataFrame:
    """Returns for each unique replay the size of the smallest repeated replay that contains it."""
    own = kernels.filter(pl.col("launch").is_in(unique_replays["launch"].implode()))
    found: list[pl.DataFrame] = []
    for launch, size in repeated_replays.sort("size").select("launch", "size").rows():
        other = kernels.filter(pl.col("launch") == launch).select("name", most="count")
        fits = (
            own.join(other, on="name", how="left")
            .group_by("launch")
            .agg(fits=(pl.col("count") <= pl.col("most").fill_null(0)).all())
        )
        found.append(fits.filter("fits").select("launch", expected=pl.lit(size, pl.Int64)))
    return pl.concat(found).unique("launch", keep="first", maintain_order=True)


def _sizes_of_similar_replay_unions(
    kernels: pl.DataFrame, unique_replays: pl.DataFrame
) -> pl.DataFrame:
    """Returns for each replay the number of kernels that occur in any of its similar replays."""
    found = [pl.DataFrame(schema={"launch": pl.UInt32, "expected": pl.Int64})]
    left = unique_replays.sort("size", "launch", descending=True)["launch"]
    while left.len() >= _MIN_UNEQUAL_GRAPH_REPLAYS and len(found) <= _MAX_DISTINGUISHED_CUDA_GRAPHS:
        own = kernels.filter(pl.col("launch").is_in(left.implode()))
        similar = _launches_of_similar_replays(own, left[0])
        if similar.len() >= _MIN_UNEQUAL_GRAPH_REPLAYS:
            alike = own.filter(pl.col("launch").is_in(similar.implode()))
            most = alike.group_by("name").agg(pl.col("count").max())["count"].sum()
            told = similar.to_frame("launch").with_columns(expected=pl.lit(most, pl.Int64))
            found.append(told)
        left = left.filter(~left.is_in(similar.implode()))
    return pl.concat(found)


def _launches_of_similar_replays(kernels: pl.DataFrame, launch: int) -> pl.Series:
    """Returns launch ids of CUDA graph replays that share most kernel names with the given one."""
    wanted = kernels.filter(pl.col("launch") == launch)["name"]
    shared = kernels.group_by("launch").agg(
        own=pl.len(), both=pl.col("name").is_in(wanted.implode()).sum()
    )
    likeness = pl.col("both") / (pl.col("own") + wanted.len() - pl.col("both"))
    return shared.filter(likeness >= _MIN_REPLAY_SIMILARITY)["launch"]
