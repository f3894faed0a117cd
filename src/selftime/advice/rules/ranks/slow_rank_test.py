"""Edges of `slow_rank` that its page does not draw: simulated jobs, of which the truth is known."""

from pathlib import Path

import pytest

from selftime.advice.base import Checked, Finding, Rule, Unknown
from selftime.analysis.ranks.ranks import Ranks
from selftime.ingest.load import load
from selftime.testing import sketch
from selftime.testing.jobs import Cause, Delay, simulate
from selftime.trace import Job

LATE_MS = 8.0


def read(folder: Path, traces: dict[int, bytes]) -> Job:
    for rank, text in traces.items():
        (folder / f"rank{rank}.json").write_bytes(text)
    job = load(folder, cache=False)
    assert isinstance(job, Job)
    return job


def step_ms(job: Job) -> float:
    """Between the ends of the first and the last step of rank 0, a step."""
    done = next(iter(job)).view("steps").select("start", "time")
    ends = (done["start"] + done["time"]).to_list()
    return float(ends[-1] - ends[0]) / (len(ends) - 1) / 1e6


@pytest.mark.parametrize("cause", ["data", "compute", "clocks", "gc", "host"])
@pytest.mark.sweep(2)
def test_the_saving_is_what_the_job_takes_less_without_it(
    rule: Rule, cause: Cause, tmp_path: Path
) -> None:
    (tmp_path / "late").mkdir()
    (tmp_path / "good").mkdir()
    late = Delay(2, int(LATE_MS * 1e6), cause)
    job = read(tmp_path / "late", simulate(ranks=4, steps=6, late=late).traces)
    good = read(tmp_path / "good", simulate(ranks=4, steps=6).traces)
    mine = next(trace for trace in job if trace.source.endswith("rank2.json"))
    [finding] = rule(mine, Ranks.of(job))
    assert isinstance(finding, Finding)
    assert finding.title.startswith("`rank 2` makes the 3 others wait")
    assert finding.saving.estimate_ms == pytest.approx(step_ms(job) - step_ms(good), rel=0.1)
    assert finding.changes


def test_nobody_is_late(rule: Rule, tmp_path: Path) -> None:
    job = read(tmp_path, simulate(ranks=4, steps=6).traces)
    [checked] = rule(next(iter(job)), Ranks.of(job))
    assert isinstance(checked, Checked)
    assert checked.upper_ms is not None
    assert 0 < checked.upper_ms < 1


def test_of_one_rank_it_cannot_be_told(rule: Rule, tmp_path: Path) -> None:
    job = read(tmp_path, {0: simulate(ranks=2, steps=4).traces[0]})
    [outcome] = rule(next(iter(job)))
    assert isinstance(outcome, Unknown)


def test_a_program_of_one_process_is_not_asked_for_more(rule: Rule) -> None:
    [outcome] = rule(sketch("mark 1 | sstt\ns = ProfilerStep#1\nt = ProfilerStep#2"))
    assert isinstance(outcome, Checked)


def test_another_rank_tells_the_same_without_changes_of_its_own(rule: Rule, tmp_path: Path) -> None:
    job = read(tmp_path, simulate(ranks=4, steps=6, late=Delay(2, 8_000_000, "data")).traces)
    [outcome] = rule(next(iter(job)), Ranks.of(job))
    assert isinstance(outcome, Finding)
    assert not outcome.changes
    assert outcome.saving.estimate_ms == pytest.approx(LATE_MS, rel=0.1)
