"""The collectives of all ranks of a job side by side, by one clock: who waited for whom.

Who comes first to a collective waits until the last has come; then all of them move data. So the
wait of a rank is the time from its start to the latest start, and the transfer the shortest of the
durations, which is that of a rank that did not wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from selftime.analysis.ranks.clocks import Clocks, align
from selftime.analysis.ranks.matching import matched
from selftime.analysis.ranks.rank_summary import RankSummary
from selftime.names.collectives import ends_together


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """The exchanges of a job."""

    rows: pl.DataFrame
    """One row for each rank and collective, in order of rank and time. Columns: rank; match, null
    if no other rank's was found; those of `collectives`, start, end and issued in ns by the common
    clock; transfer, in ns; wait, in ns, and last, whether the rank came last, both null where the
    clock of a rank that took part is not known; those of `amounts`."""
    clocks: Clocks


def joined(parts: Mapping[int, RankSummary]) -> Joined:
    """Bring the parts of a job's ranks together.

    Args:
        parts: By rank, a number from 0.
    """
    tables = [_absolute(rank, part) for rank, part in sorted(parts.items())]
    if not tables:
        return Joined(pl.DataFrame(), Clocks({}, None))
    rows = matched(pl.concat(tables))
    clocks = _clocks(rows)
    known = [rank for rank, clock in clocks.of.items() if clock.residual is not None]
    return Joined(_waits(_by_common_clock(rows, clocks), known), clocks)


def _absolute(rank: int, part: RankSummary) -> pl.DataFrame:
    times = [pl.col(name) + part.origin for name in ("issued", "start", "end")]
    rows = part.rows.select(pl.lit(rank, pl.Int64).alias("rank"), pl.all()).with_columns(times)
    return rows.with_columns(dated=pl.lit(part.origin != 0))


def _clocks(rows: pl.DataFrame) -> Clocks:
    kinds = [kind for kind in rows["collective"].unique().to_list() if ends_together(kind)]
    ends = rows.filter(pl.col("match").is_not_null() & pl.col("collective").is_in(kinds))
    return align(ends.select("rank", "end", collective="match"))


def _by_common_clock(rows: pl.DataFrame, clocks: Clocks) -> pl.DataFrame:
    """Rows of several ranks, those of each together."""
    rank = rows["rank"].to_numpy()
    bounds = np.append(np.flatnonzero(np.diff(rank, prepend=-1)), rank.size)
    parts = [(low, high, clocks.of.get(int(rank[low]))) for low, high in pairwise(bounds.tolist())]
    times = {}
    for name in ("issued", "start", "end"):
        own = rows[name].to_numpy()
        read = [
            own[low:high] if clock is None else clock.read(own[low:high])
            for low, high, clock in parts
        ]
        times[name] = pl.Series(name, np.concatenate([np.zeros(0, np.int64), *read]))
    return rows.with_columns(**times)


def _waits(rows: pl.DataFrame, known: list[int]) -> pl.DataFrame:
    is_one = pl.col("match").is_not_null()
    is_timed = is_one & pl.col("rank").is_in(known).all().over("match")
    latest = pl.col("start").max().over("match")
    shortest = (pl.col("end") - pl.col("start")).min().over("match")
    return rows.with_columns(
        wait=pl.when(is_timed).then(latest - pl.col("start")),
        transfer=pl.when(is_one).then(shortest),
        last=pl.when(is_timed).then(pl.col("start") == latest),
    )
