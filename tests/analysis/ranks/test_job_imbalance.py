"""Tests what imbalance costs, against jobs that are simulated once with it and once without."""

from dataclasses import replace
from pathlib import Path

import pytest

from selftime.analysis.ranks.job_imbalance import JobImbalance, job_imbalance
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.straggler_verdicts import straggler_verdicts
from selftime.ingest.load import load
from selftime.testing.simulated_jobs import simulate_job
from selftime.testing.simulated_pipelines import PipelineJob, simulate_pipeline_job

HEALTHY = PipelineJob(data_parallel=2, stages=3, micro_batches=6, steps=4)
ERROR = 0.03
"""Largest error of a step time as a ratio."""


def ranks_of(folder: Path, traces: dict[int, bytes]) -> Ranks:
    for rank, content in traces.items():
        (folder / f"rank{rank}.json").write_bytes(content)
    return Ranks.of(load(folder, cache=False))


def imbalance_of(folder: Path, job: PipelineJob) -> tuple[JobImbalance, list[int]]:
    """Returns the imbalance of a job, and the ranks that are said to make the others wait."""
    ranks = ranks_of(folder, simulate_pipeline_job(job).traces)
    found = job_imbalance(ranks)
    assert found is not None
    return found, [one.key for one in straggler_verdicts(ranks) if one.is_straggler]


def ms(ns: float) -> float:
    return ns / 1e6


def test_a_healthy_pipeline_loses_nothing_and_no_rank_is_named(tmp_path: Path) -> None:
    found, named = imbalance_of(tmp_path, HEALTHY)
    true = simulate_pipeline_job(HEALTHY).step_ms
    assert ms(found.recorded.with_unknown_waits) == pytest.approx(true, rel=0.002)
    assert ms(found.balanced.with_unknown_waits) == pytest.approx(true, rel=0.01)
    assert named == []
    assert found.stage_of_rank == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2}


def test_a_slow_device_in_the_middle_is_named_and_no_rank_that_waits_for_it(
    tmp_path: Path,
) -> None:
    job = replace(HEALTHY, slow_ranks=((3, 1.8),))
    found, named = imbalance_of(tmp_path, job)
    assert named == [3]
    assert found.is_device_slower(3)
    true = simulate_pipeline_job(HEALTHY).step_ms
    assert ms(found.without_slow_ranks.with_unknown_waits) == pytest.approx(true, rel=ERROR)
    assert ms(found.without_rank[3].with_unknown_waits) == pytest.approx(true, rel=ERROR)


def test_a_host_that_sleeps_is_named(tmp_path: Path) -> None:
    found, named = imbalance_of(tmp_path, replace(HEALTHY, late_hosts=((2, 15_000.0),)))
    assert named == [2]
    assert not found.is_device_slower(2)
    true = simulate_pipeline_job(HEALTHY).step_ms
    assert ms(found.without_slow_ranks.with_unknown_waits) == pytest.approx(true, rel=ERROR)


def test_a_long_last_stage_is_no_slow_rank(tmp_path: Path) -> None:
    found, named = imbalance_of(tmp_path, replace(HEALTHY, load_of_stage=(1, 1, 1.6)))
    assert named == []
    assert max(found.load_of_stage, key=lambda stage: found.load_of_stage[stage]) == 2
    equal = replace(HEALTHY, load_of_stage=(1.2, 1.2, 1.2))
    true = simulate_pipeline_job(equal).step_ms
    assert ms(found.without_stage_imbalance.with_unknown_waits) == pytest.approx(true, rel=ERROR)


def test_unequal_lengths_are_no_slow_rank(tmp_path: Path) -> None:
    job = replace(HEALTHY, length_spread=0.4)
    found, named = imbalance_of(tmp_path, job)
    assert named == []
    true = simulate_pipeline_job(replace(job, has_mean_lengths=True)).step_ms
    replayed = ms(found.without_micro_batch_imbalance.with_unknown_waits)
    assert replayed == pytest.approx(true, rel=ERROR)
    assert 0.1 < found.variation < 0.5  # paths of several micro-batches vary less than one


def test_a_stage_of_one_rank_cannot_be_compared(tmp_path: Path) -> None:
    alone = replace(HEALTHY, data_parallel=1, slow_ranks=((1, 1.5),))
    ranks = ranks_of(tmp_path, simulate_pipeline_job(alone).traces)
    reasons = {one.reason_not_straggler for one in straggler_verdicts(ranks)}
    assert reasons == {"no other rank computes its stage of the pipeline"}


def test_one_step_tells_nothing(tmp_path: Path) -> None:
    assert job_imbalance(ranks_of(tmp_path, simulate_job(ranks=2, steps=1).traces)) is None


def test_the_least_and_the_most_are_told_where_a_wait_has_no_known_cause(tmp_path: Path) -> None:
    found, _ = imbalance_of(tmp_path, HEALTHY)
    least, most = found.recorded.longer_than(found.balanced)
    assert least <= most
