"""Ranks of a running job beside each other: how far each is, which are slow, which still run."""

from typing import Any

import numpy as np
import pytest

from selftime.analysis.progress.job_progress import JobProgress, State, job_progress
from selftime.rank_progress import Activity, RankProgress, RecentSteps

MS = 1_000_000
S = 1_000 * MS
NOW = 1_000 * S


def rank(
    number: int, *, work: float = 5, step: float = 30, steps: int = 40, late: float = 0, **how: Any
) -> RankProgress:
    """A rank whose steps end together with those of others, but for `late` ms."""
    ends = np.arange(1, steps + 1) * 30 * MS + int(late * MS)
    duration = np.full(20, int(step * MS))
    before = np.full(20, int(work * MS))
    recent = RecentSteps(duration, before, duration - before, np.ones(20, np.int64))
    told = {"process": number, "world_size": None, "began_ns": 0, "written_ns": NOW, **how}
    told = {"seen_ns": int(ends[-1]), "recent": recent, **told}
    return RankProgress(source=f"{number}", rank=number, steps=steps, step_ends_ns=ends, **told)


def slow(job: JobProgress) -> list[tuple[int | None, float]]:
    return [(one.rank, one.excess_ns / MS) for one in job.slow.ranks]


def test_no_rank() -> None:
    job = job_progress([], NOW)
    assert (job.ranks, job.missing, job.is_over, job.world_size) == ((), (), False, None)
    assert job.slow.cannot_tell is not None


def test_ranks_that_are_alike() -> None:
    job = job_progress([rank(number) for number in range(4)], NOW)
    assert slow(job) == []
    assert job.slow.cannot_tell is None
    assert [(one.steps_ahead, one.late_ns, one.step_ns) for one in job.ranks] == [
        (0, 0, 30 * MS)
    ] * 4


def test_the_others_wait_in_the_backward_pass_for_the_one_that_works_longer() -> None:
    line = Activity("program", "/a.py", 7, "load")
    other = Activity("program", "/a.py", 9, "train")
    ranks = [rank(number, samples={other: 10}) for number in range(3)]
    job = job_progress([*ranks, rank(3, work=20, samples={line: 5, other: 5})], NOW)
    assert slow(job) == [(3, 15.0)]
    assert job.slow.ranks[0].activity == line


def test_ranks_that_do_not_wait_for_each_other_differ_by_their_steps() -> None:
    assert slow(job_progress([rank(0), rank(1), rank(2, step=45)], NOW)) == [(2, 15.0)]


def test_what_the_host_cannot_tell_is_not_told() -> None:
    ranks = [rank(0, has_device=True), rank(1, work=20, has_device=True)]
    job = job_progress(ranks, NOW)
    assert slow(job) == []
    assert "device" in str(job.slow.cannot_tell)


def test_ranks_are_compared_at_the_instant_that_all_tell_of() -> None:
    """Rank 1 wrote its ledger 10 steps later; that it has more steps tells nothing."""
    job = job_progress([rank(0, steps=40), rank(1, steps=50), rank(2, steps=40)], NOW)
    assert [one.steps_ahead for one in job.ranks] == [0, 0, 0]


def test_a_rank_that_ends_its_steps_later() -> None:
    job = job_progress([rank(0), rank(1), rank(2, late=4)], NOW)
    assert [one.late_ns for one in job.ranks] == [0, 0, 4 * MS]


@pytest.mark.parametrize(
    ("how", "state"),
    [
        ({}, State.runs),
        ({"written_ns": NOW - 11 * S}, State.silent),
        ({"written_ns": NOW - 11 * S, "is_recording": True}, State.records),
        ({"written_ns": NOW - 121 * S, "is_recording": True}, State.silent),
        ({"written_ns": NOW - 500 * S, "status": "ended"}, State.ended),
        ({"process": 77}, State.gone),
        ({"process": 77, "status": "ended"}, State.ended),
        ({"written_ns": NOW + 5 * S}, State.runs),  # clocks of file systems differ
    ],
)
def test_states(how: dict[str, Any], state: State) -> None:
    [one] = job_progress([rank(0, **how)], NOW, gone={77}).ranks
    assert one.state is state


def test_a_job_is_over_when_all_that_were_seen_have_ended() -> None:
    ended, killed = rank(0, status="ended"), rank(1, process=77)
    assert job_progress([ended, killed], NOW, gone={77}).is_over
    assert not job_progress([ended, rank(1)], NOW).is_over


def test_ranks_without_a_ledger_are_missing() -> None:
    job = job_progress([rank(1, world_size=4), rank(3, world_size=4)], NOW)
    assert job.missing == (0, 2)
    assert job.world_size == 4
