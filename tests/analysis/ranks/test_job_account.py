"""What the communication of a job is for, and how much of it is a wait for ranks."""

from pathlib import Path

import polars as pl
import pytest

from selftime.advice.account.job_account import account_of_job
from selftime.analysis.ranks.job_account import communication_by_group, job_account
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.rank_summary import rank_summary
from selftime.ingest.load import load
from selftime.reports.advice.account_sentence import communication_text
from selftime.testing import sketch
from selftime.testing.simulated_jobs import RankDelay, simulate_job
from selftime.testing.simulated_pipelines import PipelineJob, simulate_pipeline_job

LATE_NS = 8_000_000


def ranks_of(folder: Path, traces: dict[int, bytes]) -> Ranks:
    for rank, content in traces.items():
        (folder / f"rank{rank}.json").write_bytes(content)
    return Ranks.of(load(folder, cache=False))


def class_time(ranks: Ranks) -> float:
    return float(job_account(ranks).filter(pl.col("class") == "communication")["mean"].sum())


def test_groups_of_a_pipeline_add_up_to_the_communication(tmp_path: Path) -> None:
    job = PipelineJob(data_parallel=2, stages=2, micro_batches=4, steps=4)
    ranks = ranks_of(tmp_path, simulate_pipeline_job(job).traces)
    found = communication_by_group(ranks)
    assert set(found["group"].to_list()) == {"DP", "PP", "mp_group"}
    assert found["time"].sum() == pytest.approx(class_time(ranks))
    assert (found["waiting"] <= found["time"]).all()


def test_the_wait_for_a_late_rank_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "late").mkdir()
    (tmp_path / "good").mkdir()
    late = RankDelay(1, LATE_NS, "compute")
    ranks = ranks_of(tmp_path / "late", simulate_job(ranks=2, steps=5, late=late).traces)
    good = ranks_of(tmp_path / "good", simulate_job(ranks=2, steps=5).traces)
    waits = [float(communication_by_group(one)["waiting"].sum()) for one in (ranks, good)]
    # Nearly all communication that the late rank adds is a wait for it.
    assert waits[0] - waits[1] > LATE_NS / 2
    assert waits[0] - waits[1] == pytest.approx(class_time(ranks) - class_time(good), rel=0.1)
    account = account_of_job(ranks)
    assert account is not None
    assert sum(one.ms for one in account.communication) == pytest.approx(class_time(ranks) / 1e6)
    assert "of it waiting for ranks that come later" in communication_text(account)


def test_a_job_that_does_not_communicate_has_none() -> None:
    assert communication_by_group(Ranks({}, {})).is_empty()


def test_a_call_that_waits_for_a_collective_of_another_thread_counts_for_it() -> None:
    trace = sketch("""
        mark 1 | ssssssssssssssssssss
        cpu 1  | aa  wwwwww aa wwww a
        mark 2 |   ggggggg     hhhh
        w = _c10d_functional::wait_tensor
        g = gloo:all_gather
        h = gloo:reduce_scatter
        s = ProfilerStep#1
    """)
    told = rank_summary(trace).collectives.select("collective", "accounted").rows()
    assert told == [("allgather", 70_000), ("reducescatter", 40_000)]
