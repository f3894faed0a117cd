"""Tests the rule `micro_batch_imbalance` on simulated pipelines."""

from dataclasses import replace
from pathlib import Path

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.ingest.load import load
from selftime.testing.simulated_pipelines import PipelineJob, simulate_pipeline_job
from selftime.trace import Job


def loaded(folder: Path, job: PipelineJob) -> Job:
    for rank, content in simulate_pipeline_job(job).traces.items():
        (folder / f"rank{rank}.json").write_bytes(content)
    found = load(folder, cache=False)
    assert isinstance(found, Job)
    return found


def test_unequal_lengths_are_named_with_what_equal_ones_save(rule: Rule, tmp_path: Path) -> None:
    job = PipelineJob(stages=3, micro_batches=6, steps=4, length_spread=0.5)
    equal = replace(job, has_mean_lengths=True)
    every = loaded(tmp_path, job)
    [finding] = rule(next(iter(every)), Ranks.of(every))
    assert isinstance(finding, Finding)
    assert finding.semantics == "training"
    true = simulate_pipeline_job(job).step_ms - simulate_pipeline_job(equal).step_ms
    assert finding.saving.estimate_ms == pytest.approx(true, rel=0.15)


def test_the_noise_of_a_device_is_not_worth_it(rule: Rule, tmp_path: Path) -> None:
    every = loaded(tmp_path, PipelineJob(stages=3, micro_batches=6, steps=4, noise=0.01))
    [outcome] = rule(next(iter(every)), Ranks.of(every))
    assert isinstance(outcome, Checked)
