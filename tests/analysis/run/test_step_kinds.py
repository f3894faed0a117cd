"""The kinds of steps of a run: how long they take, how many are slow, what was recorded of them."""

from tests.ledgers import MS, Step, run_of

from selftime.analysis.run.step_kinds import step_kinds
from selftime.run import Run


def test_a_run_without_steps_has_no_kinds() -> None:
    assert step_kinds(Run()).height == step_kinds(run_of([])).height == 0


def test_recorded_steps_do_not_tell_how_long_steps_take() -> None:
    steps = [Step(10), Step(10), Step(40, recorded=True), Step(40, recorded=True), Step(12)]
    [row] = step_kinds(run_of(steps)).rows(named=True)
    assert (row["count"], row["recorded"]) == (5, 2)
    assert row["median"] == 10 * MS
    assert row["p95"] == 12 * MS
    assert row["total"] == row["covered"] == 112 * MS


def test_of_a_kind_of_which_all_were_recorded_these_are_all_there_is() -> None:
    [row] = step_kinds(run_of([Step(40, recorded=True)])).rows(named=True)
    assert row["median"] == 40 * MS


def test_work_of_selftime_is_no_time_of_a_step() -> None:
    [row] = step_kinds(run_of([Step(10, counted={"recording": 4})])).rows(named=True)
    assert row["median"] == 6 * MS


def test_kinds_come_by_their_time_with_their_loop_and_their_slow_steps() -> None:
    steps = [*[Step(2, "token")] * 9, *[Step(10, counted={"data_wait": 1})] * 9, Step(100)]
    told = step_kinds(run_of(steps)).select("kind", "count", "slow", "covered", "line").rows()
    assert told == [("training", 10, 1, 0, 21), ("token", 9, 0, 0, 20)]
    assert step_kinds(run_of(steps))["excess"].to_list() == [90 * MS, 0]
    assert step_kinds(run_of(steps))["data_wait"].to_list() == [0.9 * MS, 0]
