"""Matches the collectives of all ranks of a job, and finds which rank waited for which.

The rank that comes first to a collective waits until the last has come; then all of them move data.
So the wait of a rank is the time from its start to the latest start, and the transfer time is the
shortest of the durations, which is that of a rank that did not wait.

Collectives of one process group are matched by the sequence number in the trace. Where there is
none, collectives of one kind and size (of one kind, where the recording of a rank lacks sizes) are
matched by their order: within each step if the ranks number their steps alike, by the steps of the
run where these are counted; else from the position at which the ends are nearest by the ranks' own
clocks, which machines keep within a few milliseconds of each other; and where the time of the
recording is unknown, from the first one, if every rank has equally many. Collectives whose kinds
differ are not matched, nor are messages whose other rank is unknown, or collectives of which a
trace does not tell in which of several groups they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.ranks.clocks import RankClocks, align_rank_clocks
from selftime.analysis.ranks.rank_summary import RankSummary
from selftime.array_types import Ints
from selftime.names.collectives import all_ranks_end_together, have_ranks_equal_sizes

_PROCESS_GROUP_COLUMNS: Final = ("group", "group_ranks")
"""Columns that identify a process group in a job; its name alone is unique only in a process."""
_COLLECTIVE_MATCHING_COLUMNS: Final = (*_PROCESS_GROUP_COLUMNS, "collective", "bytes")
"""Columns that are equal on all ranks of a collective whose sequence number is unknown."""
_MESSAGES: Final = ("send", "recv")
"""What is between two ranks: a send and a receive of the other one are a transfer."""
_MAX_COLLECTIVE_POSITION_SHIFT: Final = 3
"""Largest number of positions, around the likeliest shift, by which one rank's list of collectives
is shifted to fit another's.
"""


def match_collectives_across_ranks(collectives: pl.DataFrame) -> pl.DataFrame:
    """Adds the column `match`: a number shared by all ranks' rows of one collective; else null.

    Args:
        collectives: One row for each rank and collective, of each rank in order of start. Columns:
            rank; end, in ns since 1970 by the rank's clock; dated, whether that is known; and
            group, group_ranks, group_size, sequence, collective, bytes, step, each null if
            unknown. A step number means the same on every rank.
    """
    kinds = collectives["collective"].unique().drop_nulls().to_list()
    unequal = [kind for kind in kinds if not have_ranks_equal_sizes(kind)]
    is_sized = pl.col("bytes").is_not_null().all().over(*_PROCESS_GROUP_COLUMNS, "collective")
    size = pl.when(~pl.col("collective").is_in(unequal) & is_sized).then("bytes").alias("bytes")
    original, collectives = collectives, collectives.with_columns(size)
    rows = collectives.with_row_index("_row").with_columns(
        _seq=pl.col("sequence").is_not_null().all().over(*_PROCESS_GROUP_COLUMNS),
        _stepped=pl.col("step").is_not_null().all().over(*_PROCESS_GROUP_COLUMNS),
        _dated=pl.col("dated").all().over(*_PROCESS_GROUP_COLUMNS),
    )
    counted = pl.int_range(pl.len(), dtype=pl.Int64)
    numbered, stepped = pl.col("_seq"), ~pl.col("_seq") & pl.col("_stepped")
    timed = ~pl.col("_seq") & ~pl.col("_stepped") & pl.col("_dated")
    rows = rows.with_columns(_timed=timed).with_columns(
        _first=pl.when(numbered).then("sequence").when(stepped).then("step"),
        _kind=pl.when(~numbered).then("collective"),
        _size=pl.when(~numbered).then("bytes"),
        _next=pl.when(numbered)
        .then(counted.over("rank", *_PROCESS_GROUP_COLUMNS, "sequence"))
        .when(stepped)
        .then(counted.over("rank", *_COLLECTIVE_MATCHING_COLUMNS, "step"))
        .otherwise(counted.over("rank", *_COLLECTIVE_MATCHING_COLUMNS)),
    )
    rows = rows.with_columns(_next=pl.col("_next") + _collective_position_shifts(rows))
    key = (*_PROCESS_GROUP_COLUMNS, "_first", "_kind", "_size", "_next")
    rows = rows.with_columns(
        _kinds=pl.col("collective").n_unique().over(*key),
        _ranks=pl.col("rank").n_unique().over(*key),
        _told=pl.col("_seq") | pl.col("_timed") | _ranks_have_equal_collective_counts(),
    )
    is_one = (pl.col("_kinds") == 1) & (pl.col("_ranks") > 1) & pl.col("_told")
    is_one &= ~pl.col("collective").is_in(_MESSAGES)  # a send is none of another rank
    number = pl.struct(*key).rank("dense").cast(pl.Int64) - 1
    found = rows.with_columns(match=pl.when(is_one).then(number)).sort("_row")
    return original.with_columns(found["match"])


def _ranks_have_equal_collective_counts() -> pl.Expr:
    """Returns a column expression: whether all ranks have equally many collectives of a kind."""
    among = (*_COLLECTIVE_MATCHING_COLUMNS, pl.when("_stepped").then("step"))
    own = pl.len().over("rank", *among)
    every = pl.col("rank").n_unique().over(*among) == pl.col("rank").n_unique().over(
        *_PROCESS_GROUP_COLUMNS
    )
    return (own.min().over(*among) == own.max().over(*among)) & every


def _collective_position_shifts(rows: pl.DataFrame) -> pl.Series:
    """Returns by how many positions each rank's collectives are shifted to match by time."""
    shift = np.zeros(rows.height, np.int64)
    for alike in rows.filter("_timed").partition_by(
        *_COLLECTIVE_MATCHING_COLUMNS, maintain_order=True
    ):
        ranks = sorted(alike.partition_by("rank", maintain_order=True), key=lambda one: -one.height)
        longest = ranks[0]["end"].to_numpy()
        for own in ranks[1:]:
            shift[own["_row"].to_numpy()] = _nearest_position_shift(own["end"].to_numpy(), longest)
    return pl.Series(shift)


def _nearest_position_shift(own_ends: Ints, other_ends: Ints) -> int:
    """Returns the shift (in positions) at which the ends of two ranks' collectives are closest."""
    first = round(
        float(np.median(np.searchsorted(np.sort(other_ends), own_ends) - np.arange(own_ends.size)))
    )
    apart: dict[int, float] = {}
    for shift in range(
        first - _MAX_COLLECTIVE_POSITION_SHIFT, first + _MAX_COLLECTIVE_POSITION_SHIFT + 1
    ):
        low, high = max(0, -shift), min(own_ends.size, other_ends.size - shift)
        if low < high:
            away = np.abs(own_ends[low:high] - other_ends[low + shift : high + shift])
            apart[shift] = float(np.median(away))
    return min(apart, key=lambda shift: (apart[shift], abs(shift)), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class AlignedCollectives:
    """The collectives of a job's ranks, with all times converted to one clock."""

    rows: pl.DataFrame
    """One row for each rank and collective, in order of rank and time.

    Columns: rank; match, null if no other rank's was found; those of `collectives`, start, end and
    issued in ns by the common clock; transfer, in ns; wait, in ns, and last, whether the rank came
    last, both null where the clock of a rank that took part is unknown; those of
    `time_by_lateness_cause`.
    """
    clocks: RankClocks


def align_collectives_on_one_clock(summaries: Mapping[int, RankSummary]) -> AlignedCollectives:
    """Returns the collectives of a job's ranks, with all times converted to one clock.

    Args:
        summaries: The summaries by rank, a number from 0.
    """
    are_steps_counted = all(summary.steps_before is not None for summary in summaries.values())
    tables = [
        _collectives_with_absolute_times(rank, summary, are_steps_counted=are_steps_counted)
        for rank, summary in sorted(summaries.items())
    ]
    if not tables:
        return AlignedCollectives(pl.DataFrame(), RankClocks({}, None))
    rows = pl.concat(tables)
    found = match_collectives_across_ranks(_with_pairs_as_groups(rows))
    is_known = ~pl.col("is_of_any_group") | (found["collective"] == "transfer")
    rows = rows.with_columns(match=pl.when(is_known).then(found["match"])).drop("is_of_any_group")
    named = {rank: summary.clock for rank, summary in summaries.items() if summary.clock}
    clocks = _clocks_aligned_by_collectives(rows, named)
    known = [rank for rank, clock in clocks.clock_by_rank.items() if clock.residual is not None]
    return AlignedCollectives(
        _collectives_with_waits(_collectives_on_common_clock(rows, clocks), known), clocks
    )


def _with_pairs_as_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns collectives with sends and receives as transfers of the pair of ranks they join.

    A rank's sends to another one and that one's receives from it are in the same order. Those whose
    other rank is unknown stay sends and receives.
    """
    sends, receives = (pl.col("collective") == kind for kind in ("send", "recv"))
    source = pl.when(sends).then("rank").when(receives).then("source")
    destination = pl.when(sends).then("destination").when(receives).then("rank")
    pair = pl.concat_str(source, destination, separator=" to ")
    is_pair = pair.is_not_null()
    return rows.with_columns(
        pl.when(is_pair).then(pair).otherwise("group").alias("group"),
        pl.when(is_pair).then(pair).otherwise("group_ranks").alias("group_ranks"),
        pl.when(~is_pair).then("sequence").alias("sequence"),
        pl.when(is_pair).then(pl.lit("transfer")).otherwise("collective").alias("collective"),
    )


def _collectives_with_absolute_times(
    rank: int, summary: RankSummary, *, are_steps_counted: bool
) -> pl.DataFrame:
    """Returns a rank's collectives by its own clock, with the run's numbers of steps if counted."""
    before = summary.steps_before if are_steps_counted else None
    are_groups_listed = summary.groups.height > 1
    times = [pl.col(name) + summary.origin for name in ("issued", "start", "end")]
    rows = summary.collectives.select(pl.lit(rank, pl.Int64).alias("rank"), pl.all()).with_columns(
        times
    )
    is_of_any = pl.all_horizontal(pl.col("group", "group_ranks").is_null()) & are_groups_listed
    return rows.with_columns(
        pl.col("step") + (before or 0), dated=pl.lit(summary.origin != 0), is_of_any_group=is_of_any
    )


def _clocks_aligned_by_collectives(rows: pl.DataFrame, named: dict[int, str]) -> RankClocks:
    """Returns the clocks, aligned by collectives, and where these do not join ranks by transfers.

    A sender may be done before the receiver, so that transfers align clocks less exactly.
    """
    kinds = [kind for kind in rows["collective"].unique().to_list() if all_ranks_end_together(kind)]
    matched = rows.filter(pl.col("match").is_not_null())
    ends = matched.select("rank", "end", collective="match")
    clocks = align_rank_clocks(ends.filter(matched["collective"].is_in(kinds)), named)
    joined = {rank for rank, clock in clocks.clock_by_rank.items() if clock.residual is not None}
    if joined.issuperset(ends["rank"].unique().to_list()):
        return clocks
    messages = matched["collective"].is_in([*kinds, "send", "recv"])
    return align_rank_clocks(ends.filter(messages), named)


def _collectives_on_common_clock(rows: pl.DataFrame, clocks: RankClocks) -> pl.DataFrame:
    """Returns the rows of collectives with all times converted to the common clock."""
    rank = rows["rank"].to_numpy()
    bounds = np.append(np.flatnonzero(np.diff(rank, prepend=-1)), rank.size)
    parts = [
        (low, high, clocks.clock_by_rank.get(int(rank[low])))
        for low, high in pairwise(bounds.tolist())
    ]
    times = {}
    for name in ("issued", "start", "end"):
        own = rows[name].to_numpy()
        read = [
            own[low:high] if clock is None else clock.to_reference_times(own[low:high])
            for low, high, clock in parts
        ]
        times[name] = pl.Series(name, np.concatenate([np.zeros(0, np.int64), *read]))
    return rows.with_columns(**times)


def _collectives_with_waits(rows: pl.DataFrame, aligned_ranks: list[int]) -> pl.DataFrame:
    is_one = pl.col("match").is_not_null()
    is_timed = is_one & pl.col("rank").is_in(aligned_ranks).all().over("match")
    latest = pl.col("start").max().over("match")
    shortest = (pl.col("end") - pl.col("start")).min().over("match")
    return rows.with_columns(
        wait=pl.when(is_timed).then(latest - pl.col("start")),
        transfer=pl.when(is_one).then(shortest),
        last=pl.when(is_timed).then(pl.col("start") == latest),
    )
