"""The critical path of a job: which ranks the other ranks waited for, and what those ranks did."""

from typing import Any, Final

import polars as pl

from selftime.analysis.graph.collective_arrivals import OWN_WORK_KINDS
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.clocks import RankClock
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS

_JOB_CRITICAL_PATH_SCHEMA: Final = {
    "rank": pl.Int64,
    "kind": pl.String,
    "time": pl.Int64,
    "name": pl.String,
    "file": pl.String,
    "line": pl.Int32,
    "function": pl.String,
    "how": pl.String,
    "section": pl.Int64,
}


@cached_per_trace
def job_critical_path(ranks: Ranks) -> pl.DataFrame:
    """Returns the critical path of a job over all ranks, one row per segment, the last one first.

    The path goes back from when the last rank was done with the last step: over its own work to its
    previous collective; over that collective's transfer to the rank that came last to it; and so on
    to the begin of a recording. A collective with only one rank's trace continues on that rank.
    Columns: rank, the key of `Ranks.ranks_by_key`; kind, one of `OWN_WORK_KINDS` or communication;
    time; name, file, line, function and how, of the longest segment of a section, null for its
    other kinds; section, its number, from 0.
    """
    rows: list[dict[str, Any]] = []
    parts = {key: rank.part for key, rank in ranks.ranks_by_key().items()}
    table = collectives_on_one_clock(ranks).rows
    first = _first_row_of_ranks(table)
    last = _last_arrivals_at_collectives(table)
    key = _rank_that_finished_last(ranks)
    arrival = None if key is None else parts[key].tails.row(-1, named=True)
    section = 0
    while key is not None and arrival is not None:
        rows += [{**one, "rank": key, "section": section} for one in _own_work_rows(arrival)]
        section += 1
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
                "section": section,
                "name": joint["collective"],
            }
        )
        arrival = parts[key].arrivals.row(at, named=True)
    return pl.DataFrame(rows, schema=_JOB_CRITICAL_PATH_SCHEMA, orient="row")


def _first_row_of_ranks(table: pl.DataFrame) -> dict[int, int]:
    """Returns for each rank key the index of the rank's first row in the table."""
    if not table.height:
        return {}
    at = pl.int_range(pl.len(), dtype=pl.Int64)
    return dict(table.select("rank", at=at).group_by("rank").agg(pl.col("at").min()).rows())


def _rank_that_finished_last(ranks: Ranks) -> int | None:
    """Returns the key of the rank whose last step was done last, by the common clock."""
    clocks = collectives_on_one_clock(ranks).clocks.of
    done = {
        key: int(
            clocks.get(key, RankClock()).to_reference_times(
                part.tails["done"].to_numpy() + part.origin
            )[-1]
        )
        for key, part in ((key, rank.part) for key, rank in ranks.ranks_by_key().items())
        if part.tails.height
    }
    return max(done, key=lambda key: done[key], default=None)


def _last_arrivals_at_collectives(table: pl.DataFrame) -> dict[int, tuple[int, int, int]]:
    """Returns for each collective the rank that came last, its row index, and the transfer ns."""
    if not table.height:
        return {}
    at = pl.int_range(pl.len(), dtype=pl.Int64).over("rank")
    shared = table.with_columns(at=at).filter(pl.col("last").fill_null(value=False))
    first = shared.unique("match", keep="first", maintain_order=True)
    told = first.select("match", "rank", "at", "transfer").iter_rows()
    return {match: (rank, row, moved) for match, rank, row, moved in told}


def _own_work_rows(work_before: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a rank's time (ns) since its last collective, in one row for each kind of work."""
    site = {name: work_before[name] for name in ("name", *SOURCE_SITE_COLUMNS)}
    return [
        {
            "kind": kind,
            "time": work_before[kind],
            **(site if kind == work_before["longest"] else {}),
        }
        for kind in OWN_WORK_KINDS
        if work_before[kind]
    ]
