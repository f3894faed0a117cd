"""When each rank came to each collective, against what a simulated job knows of itself."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from selftime import load
from selftime.errors import UsageError
from selftime.testing.simulated_jobs import RankDelay, simulate_job
from selftime.trace import Job, Trace

NEAR = 2_000
"""ns: clocks drift, and a trace's times are written to a thousandth of a microsecond."""


def test_a_trace_without_collectives_has_none() -> None:
    assert Trace().view("arrivals").height == 0


def test_every_rank_comes_to_every_collective_and_waits_for_the_last(tmp_path: Path) -> None:
    ran = simulate_job(ranks=3, steps=4, late=RankDelay(1, 3_000_000, "host"))
    for rank, text in ran.traces.items():
        (tmp_path / f"rank{rank}.json").write_bytes(text)
    job = load(tmp_path, cache=False)
    assert isinstance(job, Job)
    table = job.view("arrivals")
    assert table.group_by("number").len()["len"].to_list() == [3] * len(ran.last)
    for rank, waits in ran.waits.items():
        own = table.filter(rank=rank)
        assert own["number"].to_list() == list(range(len(waits)))
        assert np.abs(own["wait"].to_numpy() - np.array(waits)).max() < NEAR
    end = pl.col("start") + pl.col("duration")
    apart = table.group_by("number").agg(apart=end.max() - end.min())
    assert (apart["apart"] < NEAR).all()
    assert table.filter("last").sort("number")["rank"].to_list() == ran.last
    assert job.view("arrivals", top=2).equals(table.head(2))


def test_fewer_rows_than_none_are_refused() -> None:
    with pytest.raises(UsageError, match="`top` is `-1`"):
        Trace().view("arrivals", top=-1)
