"""Who came last to each collective, against what a simulated job knows of itself."""

from pathlib import Path

import pytest

from selftime import load
from selftime.testing.simulated_jobs import RankDelay, simulate_job
from selftime.trace import Job, Trace

NEAR = 2_000
"""ns: clocks drift, and a trace's times are written to a thousandth of a microsecond."""


def test_a_trace_without_collectives_has_none() -> None:
    assert Trace().view("collective_waits").height == 0


def test_the_last_rank_and_the_waits_are_those_of_the_job(tmp_path: Path) -> None:
    ran = simulate_job(ranks=3, steps=4, late=RankDelay(1, 3_000_000, "host"))
    for rank, text in ran.traces.items():
        (tmp_path / f"rank{rank}.json").write_bytes(text)
    job = load(tmp_path, cache=False)
    assert isinstance(job, Job)
    table = job.view("collective_waits").sort("number")
    assert table["rank"].to_list() == ran.last
    for number, row in enumerate(table.iter_rows(named=True)):
        waits = [each[number] for each in ran.waits.values()]
        assert row["ranks"] == 3
        assert row["wait"] == pytest.approx(max(waits), abs=NEAR)
        assert row["mean_wait"] == pytest.approx(sum(waits) / 2, abs=NEAR)
    late = table.filter(rank=1)
    assert late["mean_wait"].max() == table["mean_wait"].max()
    assert job.view("collective_waits")["mean_wait"].is_sorted(descending=True)
    assert job.view("collective_waits", top=2).equals(job.view("collective_waits").head(2))
