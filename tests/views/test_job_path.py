"""The critical path of simulated jobs, of which it is known who waited for whom."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from selftime.ingest.load import load
from selftime.testing.simulated_jobs import RankDelay, simulate_job
from selftime.trace import Job

STEPS = 6


@cache
def job(late: RankDelay | None) -> Job:
    with TemporaryDirectory() as folder:
        for rank, text in simulate_job(ranks=4, steps=STEPS, late=late).traces.items():
            Path(folder, f"rank{rank}.json").write_bytes(text)
        found = load(folder, cache=False)
    assert isinstance(found, Job)
    return found


@pytest.mark.parametrize(
    "late", [None, RankDelay(2, 8_000_000, "data"), RankDelay(1, 8_000_000, "compute")]
)
@pytest.mark.sweep(2)
def test_it_is_as_long_as_the_job(late: RankDelay | None) -> None:
    path = job(late).view("job_path", by="section")
    steps = next(iter(job(late))).view("steps")
    whole = steps["start"][-1] + steps["time"][-1] - steps["start"][0]
    assert path["time"].sum() == pytest.approx(whole, rel=1e-3)
    assert path["share"].sum() == pytest.approx(1)


def test_it_leads_over_the_rank_that_the_others_wait_for() -> None:
    path = job(RankDelay(2, 8_000_000, "data")).view("job_path")
    mine = path.filter(pl.col("label") == "rank 2")
    assert mine["share"].sum() > 0.99
    loading = mine.filter(pl.col("kind") == "data")
    assert loading["time"].item() == pytest.approx(STEPS * 10_000_000, rel=0.02)
    moved = path.filter(pl.col("kind") == "communication")
    assert moved["time"].sum() == pytest.approx(STEPS * 600_000, rel=0.05)  # of the last bucket


def test_where_nobody_is_late_it_changes_ranks() -> None:
    path = job(None).view("job_path")
    assert path["label"].n_unique() > 1


def test_by_line_and_kind_it_is_the_same_time() -> None:
    found = job(RankDelay(1, 8_000_000, "compute"))
    whole = found.view("job_path")["time"].sum()
    assert found.view("job_path", by="kind")["time"].sum() == whole
    lines = found.view("job_path", by="line")
    assert lines["time"].sum() == whole
    assert lines["name"][0] == "void forward_0<float>()"


def test_of_one_trace_it_is_that_ranks_own_path() -> None:
    [trace, *_] = job(None)
    path = trace.view("job_path")
    assert path["label"].unique().to_list() == ["rank 0"]
    waits = trace.view("collectives")["time"].sum()
    assert path.filter(pl.col("kind") == "communication")["time"].sum() < waits
