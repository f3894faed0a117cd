"""Collectives of several ranks are matched, and the waits for late ranks are measured.

The clocks of the simulated jobs are wrong by seconds.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest

from selftime.analysis.ranks.aligned_collectives import (
    AlignedCollectives,
    align_collectives_on_one_clock,
    match_collectives_across_ranks,
)
from selftime.analysis.ranks.rank_summary import RankSummary, rank_summary
from selftime.ingest.load import load
from selftime.testing.simulated_jobs import DelayCause, RankDelay, SimulatedJob, simulate_job
from selftime.trace import Trace

DTYPES = {
    "rank": pl.Int64,
    "group": pl.String,
    "group_ranks": pl.String,
    "group_size": pl.Int64,
    "sequence": pl.Int64,
    "collective": pl.String,
    "step": pl.Int64,
    "bytes": pl.Int64,
    "end": pl.Int64,
    "dated": pl.Boolean,
}

KINDS = ("send", "recv", "allreduce")


def rows(*given: dict[str, Any]) -> pl.DataFrame:
    usual: dict[str, Any] = {"group": "0", "group_ranks": "[0, 1]", "group_size": 2, "end": 0}
    usual |= {"collective": "allreduce", "dated": False}
    return pl.DataFrame([{**usual, **row} for row in given], DTYPES)


def pairs(table: pl.DataFrame) -> list[list[int]]:
    """Places in the table of what is one, in order."""
    found = match_collectives_across_ranks(table).with_row_index("at").drop_nulls("match")
    return found.group_by("match", maintain_order=True).agg("at")["at"].to_list()


def test_by_the_number_in_the_trace() -> None:
    table = rows(*({"rank": rank, "sequence": n} for rank in (0, 1) for n in range(rank, 4 + rank)))
    assert pairs(table) == [[1, 4], [2, 5], [3, 6]]


def test_an_all_to_all_that_ranks_give_unequal_parts_to_is_one() -> None:
    table = rows(
        *(
            {"rank": rank, "step": 1, "collective": kind, "bytes": size + rank}
            for rank in (0, 1)
            for kind, size in (("alltoall", 100), ("alltoall", 50), ("allreduce", 10))
        )
    )
    assert pairs(table) == [[0, 3], [1, 4]]


def test_sizes_that_the_recording_of_a_rank_lacks_match_any() -> None:
    table = rows(
        *(
            {"rank": rank, "step": 1, "collective": kind, "bytes": None if rank else size}
            for rank in (0, 1)
            for kind, size in (("allgather", 8), ("allreduce", 16), ("allgather", 4))
        )
    )
    assert sorted(pairs(table)) == [[0, 3], [1, 4], [2, 5]]


def test_messages_to_and_from_unknown_ranks_are_none_of_each_other() -> None:
    table = rows(
        *({"rank": rank, "step": 1, "collective": kind} for rank in (0, 1) for kind in KINDS)
    )
    assert pairs(table) == [[2, 5]]


def test_a_collective_of_which_of_several_groups_is_unknown_is_none_of_another_rank() -> None:
    summaries = dict(job(None)[1])
    told = {"group": None, "group_ranks": None, "sequence": None}
    untold = {
        rank: replace(
            summary,
            collectives=summary.collectives.with_columns(
                pl.lit(value, summary.collectives.schema[name]).alias(name)
                for name, value in told.items()
            ),
        )
        for rank, summary in summaries.items()
    }
    assert align_collectives_on_one_clock(untold).rows["match"].null_count() == 0
    groups = pl.DataFrame({"group": ["0", "1"], "ranks": ["[0, 1, 2, 3]", "[0, 1]"]})
    several = {rank: replace(summary, groups=groups) for rank, summary in untold.items()}
    rows_ = align_collectives_on_one_clock(several).rows
    assert rows_["match"].null_count() == rows_.height


def test_groups_of_one_name_and_other_ranks_are_others() -> None:
    table = rows(
        {"rank": 0, "sequence": 1},
        {"rank": 1, "sequence": 1},
        {"rank": 2, "sequence": 1, "group_ranks": "[2, 3]"},
        {"rank": 3, "sequence": 1, "group_ranks": "[2, 3]"},
    )
    assert pairs(table) == [[0, 1], [2, 3]]


def test_by_place_where_every_rank_has_as_many() -> None:
    table = rows(*({"rank": rank} for rank in (0, 0, 0, 1, 1, 1)))
    assert pairs(table) == [[0, 3], [1, 4], [2, 5]]


def test_by_no_place_where_one_has_fewer() -> None:
    table = rows(*({"rank": rank} for rank in (0, 0, 0, 1, 1)))
    assert pairs(table) == []


def test_by_place_within_steps_of_the_same_number() -> None:
    steps = {0: [4, 4, 5, 5], 1: [5, 5, 6, 6]}
    table = rows(*({"rank": rank, "step": step} for rank in steps for step in steps[rank]))
    assert pairs(table) == [[2, 4], [3, 5]]


def test_in_a_step_where_one_has_fewer_nothing_is_paired() -> None:
    steps = {0: [4, 4, 5, 5], 1: [4, 5, 5]}
    table = rows(*({"rank": rank, "step": step} for rank in steps for step in steps[rank]))
    assert pairs(table) == [[2, 5], [3, 6]]


def test_other_kinds_are_not_one() -> None:
    table = rows(
        {"rank": 0, "sequence": 1, "collective": "broadcast"},
        {"rank": 1, "sequence": 1},
        {"rank": 0, "sequence": 2},
        {"rank": 1, "sequence": 2},
    )
    assert pairs(table) == [[2, 3]]


def test_several_parts_of_one_number_are_paired_in_order() -> None:
    table = rows(*({"rank": rank, "sequence": 1} for rank in (0, 0, 1, 1)))
    assert pairs(table) == [[0, 2], [1, 3]]


def test_an_unknown_group_is_one_group() -> None:
    unknown = {"group": None, "group_ranks": None, "group_size": None}
    assert pairs(rows({"rank": 0, **unknown}, {"rank": 1, **unknown})) == [[0, 1]]


def test_nothing() -> None:
    assert match_collectives_across_ranks(rows()).columns == [*DTYPES, "match"]


def test_by_time_where_nothing_numbers_them() -> None:
    """Rank 1 began to record two exchanges later; its clock is 3 ms ahead."""
    ends = {0: [100, 200, 310, 400, 520], 1: [313, 403, 523]}
    table = rows(*({"rank": r, "end": e * 10**6, "dated": True} for r in ends for e in ends[r]))
    assert pairs(table) == [[2, 5], [3, 6], [4, 7]]


def test_by_size_where_streams_exchange_in_any_order() -> None:
    sizes = {0: [8, 4, 8, 4], 1: [4, 8, 4, 8]}
    table = rows(*({"rank": rank, "bytes": size} for rank in sizes for size in sizes[rank]))
    assert pairs(table) == [[0, 5], [1, 4], [2, 7], [3, 6]]


LATE = 8_000_000


@cache
def job(cause: DelayCause | None) -> tuple[SimulatedJob, dict[int, RankSummary]]:
    """A job of 8 ranks whose rank 5 is late by 8 ms in each step, and what its traces tell."""
    ran = simulate_job(late=None if cause is None else RankDelay(5, LATE, cause), steps=6)
    parts = {}
    with TemporaryDirectory() as folder:
        for rank, text in ran.traces.items():
            path = Path(folder) / "trace.json"
            path.write_bytes(text)
            trace = load(path, cache=False)
            assert isinstance(trace, Trace)
            parts[rank] = rank_summary(trace)
    return ran, parts


def waits(found: AlignedCollectives, rank: int) -> list[int]:
    rows = found.rows.filter(pl.col("rank") == rank).sort("match")
    return rows["wait"].to_list()


@pytest.mark.parametrize("cause", ["data", "compute", "gc", "host"])
@pytest.mark.sweep(2)
def test_the_last_rank_and_the_wait_of_each_other(cause: DelayCause) -> None:
    ran, parts = job(cause)
    found = align_collectives_on_one_clock(parts)
    assert found.rows["match"].null_count() == 0
    last = found.rows.filter("last").sort("match")["rank"].to_list()
    assert last == ran.last == [5] * len(ran.last)
    for rank in set(range(8)) - {5}:
        assert waits(found, rank) == pytest.approx(ran.waits[rank], rel=0.05)
    assert found.clocks.residual is not None
    assert found.clocks.residual < 1_000


@pytest.mark.parametrize("cause", ["data", "compute", "gc"])
def test_what_the_late_rank_did_more_of(cause: DelayCause) -> None:
    _, parts = job(cause)
    rows = align_collectives_on_one_clock(parts).rows
    spans = rows.group_by("rank", maintain_order=True).agg(
        (pl.col(f"{name}_start").last() - pl.col(f"{name}_start").first()).alias(name)
        for name in ("compute", "gc", "data")
    )
    others = spans.filter(pl.col("rank") != 5).median()
    mine = spans.filter(pl.col("rank") == 5)
    more = {name: mine[name].item() - others[name].item() for name in ("compute", "gc", "data")}
    assert max(more, key=lambda name: more[name]) == cause
    assert more[cause] == pytest.approx(5 * LATE, rel=0.05)  # five steps after the first


def test_where_a_rank_is_missing_the_rest_is_the_same() -> None:
    ran, parts = job("data")
    found = align_collectives_on_one_clock(
        {rank: part for rank, part in parts.items() if rank != 3}
    )
    assert found.rows.filter("last")["rank"].unique().to_list() == [5]
    assert waits(found, 2) == pytest.approx(ran.waits[2], rel=0.05)


def test_where_nobody_is_late_no_rank_comes_last_always() -> None:
    _, parts = job(None)
    last = align_collectives_on_one_clock(parts).rows.filter("last")["rank"].value_counts()
    assert max(last["count"].to_list()) < 18


def test_where_clocks_are_not_known_no_wait_is() -> None:
    """A broadcast does not end on all ranks at once: nothing brings these clocks together."""
    _, parts = job("data")
    sent = pl.lit("broadcast").alias("collective")
    only = {
        rank: RankSummary(part.collectives.with_columns(sent), part.origin)
        for rank, part in parts.items()
    }
    rows = align_collectives_on_one_clock(only).rows
    assert rows["match"].null_count() == 0
    assert rows["wait"].null_count() == rows["last"].null_count() == rows.height
    assert rows["transfer"].null_count() == 0


def test_one_rank_waits_for_nobody_that_is_known() -> None:
    _, parts = job("data")
    rows = align_collectives_on_one_clock({0: parts[0]}).rows
    assert rows["wait"].null_count() == rows.height


def test_no_rank() -> None:
    assert align_collectives_on_one_clock({}).rows.is_empty()
