"""Graph replays of which some kernels, or all, were not recorded.

Replays of one graph run the same kernels. Where the trace does not number graphs, a replay is
compared with those that hold all of its kernels: losses do not repeat, graphs do.
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.health.checks import Check, examples, graded, several
from selftime.analysis.health.recording import Recording
from selftime.analysis.slice_filters import filter_by_name
from selftime.units import count_text, share_text

_ALIKE: Final = 0.8
"""Replays that share this much of their kernels' names are of one graph, or of its like."""
_MOST_GRAPHS: Final = 32
"""So many graphs are told apart, the largest first: programs have few, and each is looked at."""
_LEAST_ALIKE: Final = 3
"""So many replays of one graph, none equal to another, are not whole."""


def replays(recording: Recording) -> Iterator[Check]:
    """Whether every replay of a graph has the work that others have."""
    launched = filter_by_name(recording.launches, names.is_graph_launch)
    if not launched.height or not recording.device.height:
        return
    held = _held(recording, launched["id"])
    ids = launched["id"].to_frame("launch")
    counts = ids.join(held, on="launch", how="left").group_by("launch").agg(pl.col("count").sum())
    expected = _expected(held, counts)
    told = counts.join(expected, on="launch").sort("launch")
    missing = (told["expected"] - told["count"]).clip(0)
    short = told.filter(missing > 0)
    total = int(told["expected"].sum())
    share = float(missing.sum()) / total if total else 1.0
    text = several(launched.height, "graph replay")
    if not short.height and total:
        yield Check("replays", "good", f"{text}, each with work", 0.0)
        return
    empty = int((told["count"] == 0).sum())
    text = (
        f"of {text} {count_text(short.height or empty)} lack kernels that others of their graph "
        f"have, {count_text(empty)} lack all: at least {share_text(share)} of what they ran "
        "is missing"
    )
    affects = "idle, kernels, device time of steps"
    bad = short if short.height else told
    yield Check("replays", graded(share), text, share, affects, examples(bad["launch"]))


def _held(recording: Recording, launched: pl.Series) -> pl.DataFrame:
    """The work of each replay: launch, name, graph (null if not told), count."""
    rows = recording.device.select("id", "name", "launch")
    rows = rows.filter(pl.col("launch").is_in(launched.implode()))
    told = recording.trace.device_args.select("id", "graph")
    rows = rows.join(told, on="id", how="left", maintain_order="left")
    return rows.group_by("launch", "graph", "name", maintain_order=True).agg(count=pl.len())


def _expected(held: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
    """How many slices each replay should have: launch, expected."""
    if held.height and not held["graph"].null_count():
        sizes = held.group_by("launch", "graph").agg(pl.col("count").sum())
        whole = sizes.with_columns(expected=pl.col("count").max().over("graph"))
        found = whole.group_by("launch").agg(pl.col("expected").sum())
    else:
        found = _by_likeness(held)
    filled = counts.select("launch").join(found, on="launch", how="left")
    typical = pl.col("expected").median().fill_null(0)  # of a replay without work nothing is known
    return filled.with_columns(pl.col("expected").fill_null(typical).cast(pl.Int64))


def _by_likeness(held: pl.DataFrame) -> pl.DataFrame:
    """Without numbers of graphs: each replay's own size, or that of the whole one it is part of."""
    kernels = held.group_by("launch", "name").agg(pl.col("count").sum())
    kind = pl.struct(pl.col("name").to_physical(), "count").hash(seed=1)
    looks = kernels.group_by("launch", maintain_order=True).agg(
        size=pl.col("count").sum().cast(pl.Int64), look=kind.sort().implode().hash().first()
    )
    looks = looks.with_columns(alike=pl.len().over("look"))
    whole = looks.filter(pl.col("alike") > 1).unique("look", maintain_order=True)
    single = looks.filter(pl.col("alike") == 1)
    if whole.height:
        grown = _smallest_around(kernels, single, whole)
    else:
        grown = _union_of_similar(kernels, single)
    told = looks.join(grown, on="launch", how="left")
    return told.select("launch", expected=pl.max_horizontal("size", "expected"))


def _smallest_around(
    kernels: pl.DataFrame, single: pl.DataFrame, whole: pl.DataFrame
) -> pl.DataFrame:
    """For replays unlike any other: the size of the smallest repeated one that holds them."""
    own = kernels.filter(pl.col("launch").is_in(single["launch"].implode()))
    found: list[pl.DataFrame] = []
    for launch, size in whole.sort("size").select("launch", "size").rows():
        other = kernels.filter(pl.col("launch") == launch).select("name", most="count")
        fits = (
            own.join(other, on="name", how="left")
            .group_by("launch")
            .agg(fits=(pl.col("count") <= pl.col("most").fill_null(0)).all())
        )
        found.append(fits.filter("fits").select("launch", expected=pl.lit(size, pl.Int64)))
    return pl.concat(found).unique("launch", keep="first", maintain_order=True)


def _union_of_similar(kernels: pl.DataFrame, single: pl.DataFrame) -> pl.DataFrame:
    """Where no two replays are equal: the most of each kernel among those like the largest."""
    found = [pl.DataFrame(schema={"launch": pl.UInt32, "expected": pl.Int64})]
    left = single.sort("size", "launch", descending=True)["launch"]
    while left.len() >= _LEAST_ALIKE and len(found) <= _MOST_GRAPHS:
        own = kernels.filter(pl.col("launch").is_in(left.implode()))
        similar = _similar(own, left[0])
        if similar.len() >= _LEAST_ALIKE:
            alike = own.filter(pl.col("launch").is_in(similar.implode()))
            most = alike.group_by("name").agg(pl.col("count").max())["count"].sum()
            told = similar.to_frame("launch").with_columns(expected=pl.lit(most, pl.Int64))
            found.append(told)
        left = left.filter(~left.is_in(similar.implode()))
    return pl.concat(found)


def _similar(kernels: pl.DataFrame, launch: int) -> pl.Series:
    """The replays whose kernels have the names of those of this one, itself among them."""
    wanted = kernels.filter(pl.col("launch") == launch)["name"]
    shared = kernels.group_by("launch").agg(
        own=pl.len(), both=pl.col("name").is_in(wanted.implode()).sum()
    )
    likeness = pl.col("both") / (pl.col("own") + wanted.len() - pl.col("both"))
    return shared.filter(likeness >= _ALIKE)["launch"]
