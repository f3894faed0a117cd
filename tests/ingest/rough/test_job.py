"""Traces of a job's ranks that disagree: about the time, and about what was recorded."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.ingest.load import load
from selftime.testing import simulated_jobs
from selftime.testing.simulated_jobs import RankDelay, SimulatedMachine, simulate_job
from selftime.trace import Job

STEPS = 8
EXACT = 50_000
"""Nanoseconds."""


def read(folder: Path, traces: dict[int, bytes]) -> Job:
    for rank, text in traces.items():
        (folder / f"rank{rank}.json").write_bytes(text)
    job = load(folder, cache=False)
    assert isinstance(job, Job)
    return job


@pytest.mark.sweep(1)
@pytest.mark.parametrize("seed", range(3))
def test_clocks_of_several_hosts_are_brought_together(seed: int, tmp_path: Path) -> None:
    """They are set wrong by up to 10 s and drift; ranks see the end of a collective 20 us apart."""
    machine = SimulatedMachine(jitter=20_000)
    ran = simulate_job(
        ranks=6, steps=STEPS, late=RankDelay(4, 8_000_000, "gc"), machine=machine, seed=seed
    )
    job = read(tmp_path, ran.traces)
    clocks = collectives_on_one_clock(Ranks.of(job)).clocks
    when = np.linspace(0, STEPS * 30_000_000, 50).astype(np.int64)
    read_by_all = []
    for rank, (ahead, drift) in ran.clocks.items():
        drifted = when + np.rint(when * drift).astype(np.int64)
        own = simulated_jobs.SIMULATED_JOB_START_NS + ahead + drifted
        read_by_all.append(clocks.clock_by_rank[rank].to_reference_times(own))
    assert (np.ptp(np.array(read_by_all), axis=0) < EXACT).all()
    table = job.view("ranks")
    assert table["residual"].null_count() == 0
    assert table["residual"].max() < EXACT  # type: ignore[operator]  # a number
    assert table["clock"].abs().max() > 1_000_000_000  # type: ignore[operator]  # likewise
    [late] = job.view("stragglers").filter("straggler").to_dicts()
    assert (late["rank"], late["cause"]) == (4, "gc")


def test_only_steps_that_all_ranks_recorded_are_compared(tmp_path: Path) -> None:
    traces = simulate_job(ranks=4, steps=STEPS, late=RankDelay(2, 8_000_000, "data")).traces
    body = json.loads(traces[1])
    [begin] = [e["ts"] for e in body["traceEvents"] if e["name"] == "ProfilerStep#3"]
    body["traceEvents"] = [event for event in body["traceEvents"] if event["ts"] >= begin]
    job = read(tmp_path, {**traces, 1: json.dumps(body).encode()})
    [late] = job.view("stragglers").filter("straggler").to_dicts()
    assert late["rank"] == 2
    assert late["excess"] == pytest.approx(8_000_000, rel=0.05)
    assert (
        late["late_steps"] == "4, 5, 6, 7"
    )  # what it did before its first collective is not known
    notes = dict(
        job.view("ranks").filter(pl.col("note").is_not_null()).select("rank", "note").rows()
    )
    told = f"the other ranks recorded 5 of its {STEPS} steps with collectives, too"
    assert notes == dict.fromkeys((0, 2, 3), told)
