"""Who makes the others wait, and why: of simulated jobs, of which it is known."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from selftime.ingest.load import load
from selftime.testing.simulated_jobs import DelayCause, RankDelay, SimulatedMachine, simulate_job
from selftime.trace import Job, Trace

LATE = 8_000_000
CAUSES: tuple[DelayCause, ...] = ("data", "compute", "clocks", "gc", "host")


def read(traces: dict[int, bytes]) -> Job:
    """A job as it is read from a folder."""
    with TemporaryDirectory() as folder:
        for rank, text in traces.items():
            Path(folder, f"rank{rank}.json").write_bytes(text)
        job = load(folder, cache=False)
    assert isinstance(job, Job)
    return job


@cache
def job(cause: DelayCause | None, *, without: int | None = None) -> Job:
    ran = simulate_job(late=None if cause is None else RankDelay(5, LATE, cause), steps=6)
    return read({rank: text for rank, text in ran.traces.items() if rank != without})


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.sweep(2)
def test_the_rank_the_cause_and_how_much(cause: DelayCause) -> None:
    table = job(cause).view("stragglers")
    [found] = table.filter("straggler").to_dicts()
    assert (found["label"], found["rank"], found["cause"]) == ("rank 5", 5, cause)
    assert found["excess"] == pytest.approx(LATE, rel=0.05)
    if cause != "clocks":  # a slower device falls behind all along, and is late by a part at each
        assert found["late"] == pytest.approx(LATE, rel=0.05)
    assert found["last"] == found["collectives"] == 15  # three in each step but the first
    assert (
        "no claim" in table.filter(~pl.col("straggler"))["verdict"].unique().str.head(8).to_list()
    )


def test_more_to_compute_names_the_kernel() -> None:
    [found] = job("compute").view("stragglers").filter("straggler").to_dicts()
    assert found["work"] == "void forward_0<float>()"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sweep(2)
def test_where_nobody_is_late_nothing_is_claimed(seed: int) -> None:
    machine = SimulatedMachine(noise=0.03, jitter=20_000)
    ran = simulate_job(steps=5, seed=seed, ranks=4, machine=machine)
    table = read(ran.traces).view("stragglers")
    assert table["straggler"].to_list() == [False] * 4
    assert table["cause"].null_count() == 4


def test_without_a_rank_the_verdict_is_the_same() -> None:
    less = job("data", without=3)
    [found] = less.view("stragglers").filter("straggler").to_dicts()
    assert (found["label"], found["cause"]) == ("rank 5", "data")
    assert found["excess"] == pytest.approx(LATE, rel=0.05)
    missing = less.view("ranks").filter(pl.col("note").is_not_null())
    assert missing.select("label", "note").rows() == [
        ("rank 3", "missing: there is no trace of it")
    ]
    assert any("rank 3 of 8 is missing" in note for note in less.notes)


def test_of_two_ranks_one_is_named() -> None:
    table = read(simulate_job(ranks=2, late=RankDelay(1, LATE, "data"), steps=5).traces).view(
        "stragglers"
    )
    assert table.filter("straggler")["label"].to_list() == ["rank 1"]


def test_of_two_late_ranks_both_are_named() -> None:
    one = simulate_job(late=RankDelay(5, LATE, "data"), steps=6, clocks=False).traces
    other = simulate_job(late=RankDelay(2, LATE, "compute"), steps=6, clocks=False).traces
    # Both jobs draw the same, so that their steps take as long: the middle of the others is whole.
    table = read({**one, 2: other[2]}).view("stragglers")
    assert set(table.filter("straggler")["label"]) <= {"rank 2", "rank 5"}


def test_two_steps_are_too_few() -> None:
    table = read(simulate_job(late=RankDelay(5, LATE, "data"), steps=2).traces).view("stragglers")
    assert not table["straggler"].any()
    assert "too few" in table["verdict"][0]


def test_one_rank_tells_nothing_of_others() -> None:
    job_of_one = read({0: simulate_job(ranks=2, steps=4).traces[0]})
    [trace] = job_of_one.traces.values()
    assert isinstance(trace, Trace)
    [row] = trace.view("stragglers").to_dicts()
    assert row["straggler"] is None
    assert "give those of others too" in row["verdict"]


def test_ranks_tell_what_their_steps_have_more() -> None:
    table = job("data").view("ranks")
    assert table["rank"].to_list() == list(range(8))
    mine = table.row(5, named=True)
    assert mine["differs"] == "less communication, more data loading"
    assert table.filter(pl.col("rank") != 5)["differs"].null_count() == 7
    parts = (
        "kernel",
        "memcpy",
        "memset",
        "communication",
        "runtime",
        "data_loading",
        "cpu",
        "other",
    )
    assert sum(mine[part] for part in parts) == pytest.approx(mine["time"])
    assert mine["residual"] < 50_000


def test_ranks_by_step_have_a_row_for_each() -> None:
    table = job("data").view("ranks", by="step")
    assert table.height == 8 * 6
    late = table.filter(pl.col("late") > LATE / 2)
    assert late["rank"].unique().to_list() == [5]


def test_collectives_of_all_ranks_count_once() -> None:
    found = job("data")
    [row] = found.view("collectives").to_dicts()
    [alone] = next(iter(found.traces.values())).view("collectives").to_dicts()
    assert (row["count"], row["bytes"], row["ranks"]) == (alone["count"], alone["bytes"], 8)
    assert row["last"] == "rank 5"
    assert row["wait"] + row["transfer"] == pytest.approx(row["time"], rel=1e-3)
    assert alone["wait"] is None
    assert row["bus_bandwidth"] > 2 * alone["bus_bandwidth"]


def test_any_view_of_a_job_has_the_rank_before() -> None:
    found = job("data")
    table = found.view("overlap")
    assert table["rank"].to_list() == list(range(8))
    first = next(iter(found.traces.values()))
    assert table.drop("rank", "label").head(1).equals(first.view("overlap"))
