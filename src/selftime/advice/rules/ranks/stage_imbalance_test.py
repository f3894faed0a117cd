"""Tests the rule `stage_imbalance` on simulated pipelines."""

from pathlib import Path

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
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


@pytest.mark.parametrize(("load", "heavy"), [((1, 1, 1.7), 2), ((1.6, 1, 1), 0)])
def test_the_stage_with_the_most_work_is_named_with_what_balance_saves(
    rule: Rule, load: tuple[float, ...], heavy: int, tmp_path: Path
) -> None:
    job = PipelineJob(stages=3, micro_batches=6, steps=4, load_of_stage=load)
    equal = PipelineJob(stages=3, micro_batches=6, steps=4, load_of_stage=(sum(load) / 3,) * 3)
    every = loaded(tmp_path, job)
    [finding] = rule(next(iter(every)), Ranks.of(every))
    assert isinstance(finding, Finding)
    assert f"stage {heavy} has the most to compute" in finding.title
    true = simulate_pipeline_job(job).step_ms - simulate_pipeline_job(equal).step_ms
    assert finding.saving.estimate_ms == pytest.approx(true, rel=0.1)


def test_one_rank_alone_tells_nothing_of_the_other_stages(rule: Rule, tmp_path: Path) -> None:
    trace = next(iter(loaded(tmp_path, PipelineJob(stages=2, micro_batches=3, steps=3))))
    [outcome] = rule(trace, Ranks.of(trace))
    assert isinstance(outcome, Unknown)


def test_equal_stages_are_not_worth_it(rule: Rule, tmp_path: Path) -> None:
    every = loaded(tmp_path, PipelineJob(stages=2, micro_batches=4, steps=3, noise=0.0))
    [outcome] = rule(next(iter(every)), Ranks.of(every))
    assert isinstance(outcome, Checked)
