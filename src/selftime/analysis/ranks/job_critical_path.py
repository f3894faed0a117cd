"""Computes the critical path of a job: which ranks the others waited for, and what those did."""

from typing import Any, Final

import polars as pl

from selftime.analysis.graph.collective_arrivals import OWN_WORK_KINDS
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.job_dependencies import NO_ROW, job_dependencies, rank_finishes
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

    The path goes back along `job_dependencies` from when the last rank was done with the last step:
    over its own work to its previous collective; over that collective's transfer to the rank that
    came last to it; and so on to the begin of a recording. Where a rank waited for the previous
    collective of the same group alone, the path goes to that one. It is as long as the replay of
    the unchanged job takes. A collective with only one rank's trace continues on that rank.
    Columns: rank, the key of `Ranks.ranks_by_key`; kind, one of `OWN_WORK_KINDS` or communication;
    time; name, file, line, function and how, of the longest segment of a section, null for its
    other kinds; section, its number, from 0.
    """
    rows: list[dict[str, Any]] = []
    summaries = {key: rank.summary for key, rank in ranks.ranks_by_key().items()}
    dependencies, finishes = job_dependencies(ranks), rank_finishes(ranks)
    times = dependencies.times()
    last = dependencies.last_rows(times)
    names = collectives_on_one_clock(ranks).rows
    key = max(finishes, key=lambda one: finishes[one].time(times), default=None)
    if key is None:
        return pl.DataFrame(schema=_JOB_CRITICAL_PATH_SCHEMA)
    work = summaries[key].work_after_last_collective.row(-1, named=True)
    at, section = finishes[key].previous_collective_row, 0
    rows += [{**one, "rank": key, "section": section} for one in _own_work_rows(work)]
    while at != NO_ROW:
        section, at = section + 1, int(last[at])
        key = dependencies.rank_of(at)
        moved, name = int(dependencies.transfer[at]), names["collective"][at]
        rows.append(
            {"rank": key, "kind": "communication", "time": moved, "section": section, "name": name}
        )
        if times.is_held_by_group[at]:
            at = int(dependencies.previous_of_group[at])
            continue
        work = summaries[key].arrivals.row(at - dependencies.first_row_of_rank[key], named=True)
        rows += [{**one, "rank": key, "section": section} for one in _own_work_rows(work)]
        at = int(dependencies.previous_collective_row[at])
    return pl.DataFrame(rows, schema=_JOB_CRITICAL_PATH_SCHEMA, orient="row")


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
