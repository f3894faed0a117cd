"""Finds on which line and kernel a rank spends more time than the other ranks of its job."""

from typing import Any, Final

import polars as pl

from selftime.analysis.ranks.job_ranks import RankOfJob
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS

_MIN_SHARE_OF_TIME_IN_COMMON_KERNELS: Final = 0.8
"""Smallest share (0 to 1) of kernel time in kernels that all ranks run equally often, for a
comparison of the ranks' speeds.
"""
_MIN_KERNEL_SHARE_OF_OVERALL_SLOWDOWN: Final = 0.5
"""Every common kernel must be slower by at least this share (0 to 1) of the overall slowdown."""
_MIN_SAMPLES_OF_FUNCTION: Final = 10
"""Smallest number of samples of a function for its line to be told by them."""
_MIN_SAMPLE_SHARE_OF_LINE: Final = 0.5
"""Smallest share (0 to 1) of a function's samples in a line for it to be named."""
_MIN_EXCESS_SHARE_OF_SAMPLES: Final = 0.25
"""Smallest share (0 to 1) of a rank's samples, above that of others, in a line for it to be named.
"""
_TIME_CLASSES_BY_LATENESS_CAUSE: Final = {
    "compute": ("compute",),
    "clocks": ("compute",),
    "experts": ("compute",),
    "gc": ("garbage_collection",),
    "data": ("data_wait",),
    "host": ("python", "launch", "copy", "compile", "capture", "other"),
}
"""Maps a cause of lateness to the classes of time in which a rank spends it."""
_TIME_CLASSES_OF_WAITING: Final = ("communication", "device_wait", "idle")
"""Classes of time in which a rank waits, which makes none late."""


def _rank_table_with_medians_of_others(
    key: int, ranks_by_key: dict[int, RankOfJob], table_name: str, key_columns: tuple[str, ...]
) -> pl.DataFrame | None:
    """Returns a rank's table with the medians of the other ranks' rows; per step, 0 if missing."""

    def rank_table_per_step(rank: RankOfJob) -> pl.DataFrame:
        table: pl.DataFrame = getattr(rank.summary, table_name)
        steps = max(rank.summary.steps["counted"].sum(), 1)
        numbers = [column for column in table.columns if column not in key_columns]
        return table.with_columns(pl.col(numbers) / steps)

    own = rank_table_per_step(ranks_by_key[key])
    rest = [rank_table_per_step(rank) for other, rank in ranks_by_key.items() if other != key]
    rest = [table for table in rest if table.height]
    if not own.height or not rest:
        return None
    numbers = [column for column in own.columns if column not in key_columns]
    middle = (
        pl.concat(rest)
        .group_by(key_columns)
        .agg(
            pl.col(column).extend_constant(0.0, len(rest) - pl.len()).median() for column in numbers
        )
    )
    both = own.join(middle, on=list(key_columns), how="left", suffix="_others", nulls_equal=True)
    return both.with_columns(pl.col([f"{column}_others" for column in numbers]).fill_null(0))


def line_with_most_excess_time(
    key: int, ranks_by_key: dict[int, RankOfJob], cause: str | None
) -> dict[str, Any] | None:
    """Returns the source line on which a rank's time exceeds that of other ranks the most.

    Of the account of its steps, the time of the classes that `cause` is about.
    """
    if cause == "data":  # the account charges it to the loop, which waits for what loads
        sampled = _line_with_most_excess_samples(key, ranks_by_key)
        if sampled is not None:
            return sampled
    both = _rank_table_with_medians_of_others(
        key, ranks_by_key, "spent", ("class", *SOURCE_SITE_COLUMNS)
    )
    if both is None:
        return _line_with_most_excess_samples(key, ranks_by_key) if cause == "host" else None
    classes = _TIME_CLASSES_BY_LATENESS_CAUSE.get(cause or "")
    told = pl.col("class")
    is_of_cause = told.is_in(classes) if classes else ~told.is_in(_TIME_CLASSES_OF_WAITING)
    more = (pl.col("time") - pl.col("time_others")).sum().alias("more")
    top = both.filter(is_of_cause).group_by(SOURCE_SITE_COLUMNS).agg(more)
    top = top.filter(pl.col("more") > 0).sort(
        "more", *SOURCE_SITE_COLUMNS, descending=[True, *[False] * len(SOURCE_SITE_COLUMNS)]
    )
    if not top.height:
        return _line_with_most_excess_samples(key, ranks_by_key) if cause == "host" else None
    found = top.row(0, named=True)
    return found | _sampled_line_of_function(ranks_by_key[key].summary.sampled, found)


def _line_with_most_excess_samples(
    key: int, ranks_by_key: dict[int, RankOfJob]
) -> dict[str, Any] | None:
    """Returns the line that samples found running more often than on other ranks; None if unsure.

    For recordings without Python frames: the lines are those of steps that were not recorded.
    """
    place = ("file", "line", "function")
    tables = []
    for rank, one in ranks_by_key.items():
        sampled = one.summary.sampled
        total = sum(sampled["samples"].to_list()) if sampled.height else 0
        if rank == key and total < _MIN_SAMPLES_OF_FUNCTION:
            return None
        if total:
            share = pl.col("samples") / total
            tables.append(sampled.select(*place, share.alias("share"), rank=pl.lit(rank, pl.Int64)))
    others = len(tables) - 1
    if not others:
        return None
    is_own = pl.col("rank") == key
    more = (
        pl.concat(tables)
        .group_by(place)
        .agg(
            own=pl.col("share").filter(is_own).sum(),
            others=pl.col("share").filter(~is_own).sum() / others,
        )
    )
    top = more.sort(pl.col("own") - pl.col("others"), *place, descending=[True, *[False] * 3])
    found = top.row(0, named=True)
    if found["own"] - found["others"] < _MIN_EXCESS_SHARE_OF_SAMPLES:
        return None
    return {**{name: found[name] for name in place}, "how": "stack"}


def _sampled_line_of_function(sampled: pl.DataFrame, place: dict[str, Any]) -> dict[str, Any]:
    """Returns the line of a function that most samples of usual steps found running; {} if unsure.

    For a place known by the definition of its function only: what no operator shows, such as sleep
    and input or output, has no other line in the recording.
    """
    if place["how"] != "definition" or not sampled.height:
        return {}
    is_file = (pl.col("file") == place["file"]) | pl.col("file").str.ends_with(f"/{place['file']}")
    own = sampled.filter(is_file & (pl.col("function") == place["function"])).sort(
        "samples", "line", descending=[True, False]
    )
    every = sum(own["samples"].to_list())
    if every < _MIN_SAMPLES_OF_FUNCTION:
        return {}
    line, samples = own.row(0, named=True)["line"], own["samples"][0]
    if samples < _MIN_SAMPLE_SHARE_OF_LINE * every:
        return {}
    return {"line": line, "how": "stack"}


def kernel_with_most_excess_time(key: int, ranks_by_key: dict[int, RankOfJob]) -> str | None:
    both = _rank_table_with_medians_of_others(key, ranks_by_key, "work", ("name",))
    if both is None:
        return None
    top = both.sort(pl.col("time") - pl.col("time_others"), "name", descending=[True, False])
    return str(top["name"][0]) if top["time"][0] > top["time_others"][0] else None


def runs_same_kernels_slower(key: int, ranks_by_key: dict[int, RankOfJob]) -> bool:
    """Returns whether a rank runs the same kernels as other ranks, as often, but slower."""
    both = _rank_table_with_medians_of_others(key, ranks_by_key, "work", ("name",))
    if both is None:
        return False
    same = both.filter((pl.col("count") == pl.col("count_others")) & (pl.col("time_others") > 0))
    whole, time = float(both["time"].sum()), float(same["time"].sum())
    if not same.height or time < _MIN_SHARE_OF_TIME_IN_COMMON_KERNELS * whole:
        return False
    slower = time / float(same["time_others"].sum()) - 1
    each = same["time"] / same["time_others"] - 1
    alike = float(same.filter(each >= _MIN_KERNEL_SHARE_OF_OVERALL_SLOWDOWN * slower)["time"].sum())
    return slower > 0 and alike >= _MIN_SHARE_OF_TIME_IN_COMMON_KERNELS * time
