"""Tests that the ranks of a job agree on the steps that they record."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from torch._C._distributed_c10d import HashStore

from selftime.capture.recorder import job_agreement
from selftime.capture.recorder.job_agreement import (
    MAX_STEPS_UNTIL_ALL_READY,
    MAX_STEPS_UNTIL_ANSWER,
    JobAgreement,
)
from selftime.capture.recorder.recording_start import RecordingStart
from selftime.capture.recorder.run_options import RunOptions

ACTIVE = 5
NEVER = 1_000_000
Decide = Callable[..., tuple[list[int], list[int | None]]]


class SilentStore(HashStore):
    """A store whose server is gone."""

    def check(self, keys: list[str]) -> bool:
        raise RuntimeError(f"no connection for {keys}")

    def add(self, key: str, amount: int) -> int:
        raise RuntimeError(f"no connection for {key} {amount}")


@pytest.fixture
def decide(monkeypatch: pytest.MonkeyPatch) -> Decide:
    """Runs ranks in turn; returns the step at which each begins, and the agreed steps of each.

    Its arguments are the step at which each rank is ready, how many steps it would record, by how
    many steps it is ahead of the first rank, the store, the ranks that are recorded, and how many
    ranks the job has.
    """
    names = count()

    def run(
        ready_at: list[int],
        steps: list[int] | None = None,
        ahead: list[int] | None = None,
        store: HashStore | None = None,
        listed: str | None = None,
        world_size: int | None = None,
    ) -> tuple[list[int], list[int | None]]:
        shared = HashStore() if store is None else store
        monkeypatch.setattr(job_agreement, "_store_of_program", lambda: shared)
        monkeypatch.setattr(
            job_agreement, "rank_and_world", lambda: (0, world_size or len(ready_at))
        )
        name = f"case {next(names)}"
        ranks = []
        for _ in ready_at:
            job_agreement._decisions.clear()
            ranks.append(JobAgreement(name, ACTIVE, listed))
        begins = [NEVER] * len(ranks)
        for turn in range(1, 60):
            for at, rank in enumerate(ranks):
                step = turn + (ahead or [0] * len(ranks))[at]
                ready_for = (steps or [ACTIVE] * len(ranks))[at] if step >= ready_at[at] else None
                if begins[at] == NEVER and rank.may_begin(step, ready_for):
                    begins[at] = step
        return begins, [rank.steps for rank in ranks]

    return run


@pytest.mark.parametrize("ready_at", [[4, 6, 9], [9, 4, 6], [3, 3, 3]])
def test_all_ranks_begin_at_the_same_step(decide: Decide, ready_at: list[int]) -> None:
    begins, steps = decide(ready_at)
    assert len(set(begins)) == 1
    assert max(ready_at) < begins[0] <= max(ready_at) + 3
    assert steps == [ACTIVE] * 3


@pytest.mark.parametrize("ahead", [[1, 0], [0, 1]])
def test_a_rank_may_be_a_step_ahead(decide: Decide, ahead: list[int]) -> None:
    begins, _ = decide([5, 5], ahead=ahead)
    assert begins[0] == begins[1]


def test_all_record_as_many_steps_as_the_one_that_has_room_for_the_fewest(decide: Decide) -> None:
    assert decide([4, 5, 6], steps=[5, 2, 3])[1] == [2, 2, 2]


def test_a_rank_that_is_never_ready_holds_the_others_for_some_steps_only(decide: Decide) -> None:
    begins, steps = decide([4, 4, NEVER])
    assert begins == [begins[0]] * 3
    assert begins[0] <= 4 + MAX_STEPS_UNTIL_ALL_READY + 2
    assert steps == [ACTIVE] * 3


def test_nobody_waits_for_ranks_that_are_not_recorded(decide: Decide) -> None:
    begins, steps = decide([4, 6], listed="0,7-9", world_size=8)
    assert begins == [begins[0]] * 2
    assert 6 < begins[0] <= 6 + 3
    assert steps == [ACTIVE] * 2


def test_a_rank_that_is_recorded_alone_begins_when_it_is_ready(decide: Decide) -> None:
    assert decide([4], listed="5", world_size=1024)[0] == [6]


def test_without_an_answer_each_rank_records_by_itself(decide: Decide) -> None:
    assert decide([4, 7], store=SilentStore()) == ([4, 7], [None, None])


def test_a_rank_alone_waits_for_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_agreement, "_store_of_program", lambda: None)
    alone = JobAgreement("alone", ACTIVE)
    assert [alone.may_begin(step, ACTIVE if step > 2 else None) for step in (1, 2, 3)] == [
        *(False, False, True)
    ]


def test_ranks_that_have_seen_other_numbers_of_steps_begin_at_the_same_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = HashStore()
    monkeypatch.setattr(job_agreement, "_store_of_program", lambda: store)
    monkeypatch.setattr(job_agreement, "rank_and_world", lambda: (0, 2))
    starts = {}
    for before in (0, 4):
        job_agreement._decisions.clear()
        starts[before] = RecordingStart(RunOptions(folder=tmp_path), "loop", before)
    begins: dict[int, int] = {}
    for step in range(5, 20):
        for before, start in starts.items():
            if start.is_due(step - before, [100, 100], lambda: ACTIVE):
                begins.setdefault(before, step)
    assert begins[0] == begins[4]


def test_who_decided_may_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = HashStore()
    monkeypatch.setattr(job_agreement, "_store_of_program", lambda: store)
    monkeypatch.setattr(job_agreement, "rank_and_world", lambda: (0, 2))
    job_agreement._decisions.clear()
    assert not JobAgreement("gone", ACTIVE).may_begin(3, ACTIVE)
    job_agreement._decisions.clear()
    left = JobAgreement("gone", ACTIVE)
    began = next(step for step in count(4) if left.may_begin(step, ACTIVE))
    assert began == 4 + MAX_STEPS_UNTIL_ANSWER


def test_each_recording_of_a_loop_is_a_decision_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    store = HashStore()
    monkeypatch.setattr(job_agreement, "_store_of_program", lambda: store)
    monkeypatch.setattr(job_agreement, "rank_and_world", lambda: (0, 1))
    first, second = (JobAgreement("loop", ACTIVE) for _ in range(2))
    assert [first.may_begin(step, ACTIVE) for step in (1, 2, 3)] == [False, False, True]
    assert [second.may_begin(step, None) for step in (4, 5, 6)] == [False, False, False]
