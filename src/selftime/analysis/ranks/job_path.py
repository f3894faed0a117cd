"""The critical path of a job: over the ranks that the others waited for, and what these did."""

from typing import Any, Final

import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.collective_arrivals import WORK
from selftime.analysis.ranks.clocks import Clock
from selftime.analysis.ranks.ranks import Ranks, joined_ranks
from selftime.analysis.sites import SITE

_SCHEMA: Final = {
    "rank": pl.Int64,
    "kind": pl.String,
    "time": pl.Int64,
    "name": pl.String,
    "file": pl.String,
    "line": pl.Int32,
    "function": pl.String,
    "how": pl.String,
    "leg": pl.Int64,
}


@cached_per_trace
def job_path(ranks: Ranks) -> pl.DataFrame:
    """What the path is made of, the last first. Times in ns.

    It leads from when the last rank was done with the last step back: over its own work to the
    collective that it came from; over that one's transfer to the rank that came last to it; and so
    on to the begin of a recording. Columns: rank, the key of `Ranks.by_key`; kind, one of `WORK` or
    communication; time; name, file, line, function and how, of the longest segment of a leg,
    null for its other kinds; leg, its number, from 0. A collective of which only one rank's
    trace is there leads on along that rank.
    """
    rows: list[dict[str, Any]] = []
    parts = {key: rank.part for key, rank in ranks.by_key().items()}
    table = joined_ranks(ranks).rows
    first = _firsts(table)
    last = _last(table)
    key = _latest(ranks)
    arrival = None if key is None else parts[key].tails.row(-1, named=True)
    leg = 0
    while key is not None and arrival is not None:
        rows += [{**one, "rank": key, "leg": leg} for one in _work(arrival)]
        leg += 1
        before = arrival["before"]
        if before is None:
            break
        joint = table.row(first[key] + before, named=True)
        key, at, moved = last.get(joint["match"], (key, before, joint["end"] - joint["start"]))
        rows.append(
            {
                "rank": key,
                "kind": "communication",
                "time": moved,
                "leg": leg,
                "name": joint["collective"],
            }
        )
        arrival = parts[key].arrivals.row(at, named=True)
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _firsts(table: pl.DataFrame) -> dict[int, int]:
    """The first row of each rank."""
    if not table.height:
        return {}
    at = pl.int_range(pl.len(), dtype=pl.Int64)
    return dict(table.select("rank", at=at).group_by("rank").agg(pl.col("at").min()).rows())


def _latest(ranks: Ranks) -> int | None:
    """The rank that was done last, by the common clock."""
    clocks = joined_ranks(ranks).clocks.of
    done = {
        key: int(clocks.get(key, Clock()).read(part.tails["done"].to_numpy() + part.origin)[-1])
        for key, part in ((key, rank.part) for key, rank in ranks.by_key().items())
        if part.tails.height
    }
    return max(done, key=lambda key: done[key], default=None)


def _last(table: pl.DataFrame) -> dict[int, tuple[int, int, int]]:
    """For each collective of several ranks: who came last, the row there, and the transfer."""
    if not table.height:
        return {}
    at = pl.int_range(pl.len(), dtype=pl.Int64).over("rank")
    shared = table.with_columns(at=at).filter(pl.col("last").fill_null(value=False))
    first = shared.unique("match", keep="first", maintain_order=True)
    told = first.select("match", "rank", "at", "transfer").iter_rows()
    return {match: (rank, row, moved) for match, rank, row, moved in told}


def _work(arrival: dict[str, Any]) -> list[dict[str, Any]]:
    """What a leg of one rank is made of, by kind."""
    site = {name: arrival[name] for name in ("name", *SITE)}
    return [
        {"kind": kind, "time": arrival[kind], **(site if kind == arrival["longest"] else {})}
        for kind in WORK
        if arrival[kind]
    ]
