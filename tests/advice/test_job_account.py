"""The account of a job: the mean over its ranks, the range, and the rank that is late."""

from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tests.advice.test_job import read

from selftime.advice import advise
from selftime.advice.account.account_rows import AccountRow, StepAccount
from selftime.advice.account.job_account import LateRank, account_of_job, with_late_rank
from selftime.advice.rule_outcomes import Where
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.reports.advice.account_sentence import job_sentence, late_rank_text
from selftime.reports.advice.brief import as_brief
from selftime.reports.advice.queries import ShellQueries
from selftime.reports.advice.text import as_text
from selftime.reports.schemas import schema
from selftime.testing import sketch
from selftime.testing.simulated_jobs import RankDelay, simulate_job
from selftime.views.account import account


def test_one_rank_is_no_job() -> None:
    trace = sketch("mark 1 | sss\ncpu 1 | kkk\ns = ProfilerStep#1\nk = aten::mm")
    assert account_of_job(Ranks.of(trace)) is None
    assert advise(trace, rules={}).job is None


def test_it_is_the_mean_over_the_ranks_and_adds_up(tmp_path: Path) -> None:
    late = RankDelay(2, 8_000_000, "data")
    job = read(tmp_path, simulate_job(ranks=4, steps=6, late=late).traces)
    found = account_of_job(Ranks.of(job))
    assert found is not None
    assert found.ranks == 4
    assert sum(round(row.ms * 1e6) for row in found.rows) == round(found.step_ms * 1e6)
    steps = [float(account(trace)["per_step"].sum()) / 1e6 for trace in job]
    assert found.step_ms == pytest.approx(sum(steps) / 4, abs=1e-6)
    for row in found.rows:
        assert row.low_ms <= row.ms + 1e-6
        assert row.ms <= row.high_ms + 1e-6
    [waited] = [row for row in found.rows if row.time_class == "data_wait"]
    assert waited.high_rank == "rank 2"
    assert waited.high_ms - waited.low_ms == pytest.approx(8.0, rel=0.2)


def test_it_says_which_rank_is_late_and_why(tmp_path: Path) -> None:
    late = RankDelay(1, 8_000_000, "data")
    said = advise(read(tmp_path, simulate_job(ranks=3, steps=6, late=late).traces))
    assert said.job is not None
    assert said.job.late is not None
    assert (said.job.late.rank, said.job.late.why) == ("rank 1", "its batches come later")
    assert said.job.late.late_ms == pytest.approx(8.0, rel=0.2)
    sentence = job_sentence(said.job)
    assert sentence.endswith("rank 1 makes the others wait: its batches come later")
    assert "the mean of 3 ranks" in sentence
    assert sentence in as_text(said, width=1000)
    assert "**Job** " in as_brief(said, ShellQueries("job", said.trace))
    jsonschema.validate(said.to_dict(), schema("advice"))


def test_ranks_that_are_alike_decide_together(tmp_path: Path) -> None:
    said = advise(read(tmp_path, simulate_job(ranks=2, steps=6).traces), rules={})
    assert said.job is not None
    assert said.job.late is None
    assert "makes the others wait" not in job_sentence(said.job)


def test_waits_of_another_rank_say_which_rank_is_late() -> None:
    row = AccountRow(
        time_class="communication", ms=6.0, share=1.0, verdict="unexplained", text="it waits"
    )
    whole = StepAccount(
        step_ms=6.0,
        steps=1,
        basis="recorded",
        bound_by=("communication",),
        parts=(),
        rows=(row, replace(row, time_class="compute"), replace(row, verdict="finding")),
        found_ms=0.0,
        needed_ms=0.0,
        small_ms=0.0,
        unexplained_ms=6.0,
    )
    late = LateRank(
        rank="rank 2",
        late_ms=8.0,
        why="its batches come later",
        where=Where("train.py", 7, "main", "stack"),
    )
    told = "rank 2 makes the others wait: its batches come later at `train.py:7`; it waits"
    found = with_late_rank(whole, late, "rank 0")
    assert [row.text for row in found.rows] == [told, "it waits", "it waits"]
    assert with_late_rank(whole, late, "rank 2") == whole
    at_function = replace(late, where=Where("train.py", 4, "load", "definition"))
    where = "its batches come later in the function `load`, defined at `train.py:4`"
    assert where in with_late_rank(whole, at_function, "rank 0").rows[0].text
    assert late_rank_text(at_function).endswith(where)
