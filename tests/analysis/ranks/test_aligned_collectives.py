"""Of simulated jobs, whose clocks are wrong by seconds: who waited for whom, and how long."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from selftime.analysis.ranks.aligned_collectives import Joined, joined
from selftime.analysis.ranks.rank_summary import RankSummary, rank_summary
from selftime.ingest.load import load
from selftime.testing.jobs import Cause, Delay, Job, simulate
from selftime.trace import Trace

LATE = 8_000_000


@cache
def job(cause: Cause | None) -> tuple[Job, dict[int, RankSummary]]:
    """A job of 8 ranks whose rank 5 is late by 8 ms in each step, and what its traces tell."""
    ran = simulate(late=None if cause is None else Delay(5, LATE, cause), steps=6)
    parts = {}
    with TemporaryDirectory() as folder:
        for rank, text in ran.traces.items():
            path = Path(folder) / "trace.json"
            path.write_bytes(text)
            trace = load(path, cache=False)
            assert isinstance(trace, Trace)
            parts[rank] = rank_summary(trace)
    return ran, parts


def waits(found: Joined, rank: int) -> list[int]:
    rows = found.rows.filter(pl.col("rank") == rank).sort("match")
    return rows["wait"].to_list()


@pytest.mark.parametrize("cause", ["data", "compute", "gc", "host"])
def test_the_last_rank_and_the_wait_of_each_other(cause: Cause) -> None:
    ran, parts = job(cause)
    found = joined(parts)
    assert found.rows["match"].null_count() == 0
    last = found.rows.filter("last").sort("match")["rank"].to_list()
    assert last == ran.last == [5] * len(ran.last)
    for rank in set(range(8)) - {5}:
        assert waits(found, rank) == pytest.approx(ran.waits[rank], rel=0.05)
    assert found.clocks.residual is not None
    assert found.clocks.residual < 1_000


@pytest.mark.parametrize("cause", ["data", "compute", "gc"])
def test_what_the_late_rank_did_more_of(cause: Cause) -> None:
    _, parts = job(cause)
    rows = joined(parts).rows
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
    found = joined({rank: part for rank, part in parts.items() if rank != 3})
    assert found.rows.filter("last")["rank"].unique().to_list() == [5]
    assert waits(found, 2) == pytest.approx(ran.waits[2], rel=0.05)


def test_where_nobody_is_late_no_rank_comes_last_always() -> None:
    _, parts = job(None)
    last = joined(parts).rows.filter("last")["rank"].value_counts()
    assert max(last["count"].to_list()) < 18


def test_where_clocks_are_not_known_no_wait_is() -> None:
    """A broadcast does not end on all ranks at once: nothing brings these clocks together."""
    _, parts = job("data")
    sent = pl.lit("broadcast").alias("collective")
    only = {
        rank: RankSummary(part.rows.with_columns(sent), part.origin) for rank, part in parts.items()
    }
    rows = joined(only).rows
    assert rows["match"].null_count() == 0
    assert rows["wait"].null_count() == rows["last"].null_count() == rows.height
    assert rows["transfer"].null_count() == 0


def test_one_rank_waits_for_nobody_that_is_known() -> None:
    _, parts = job("data")
    rows = joined({0: parts[0]}).rows
    assert rows["wait"].null_count() == rows.height


def test_no_rank() -> None:
    assert joined({}).rows.is_empty()
