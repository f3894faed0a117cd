"""What steps were that other events of a program superseded, as the ledger's reader finds out."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from selftime.ingest.superseded_steps import with_acting, with_superseded_steps
from selftime.ledger_format import BEFORE_FIRST_STEP
from selftime.run import COUNTED

KINDS = {0: "inference", 1: "training", 2: "rollout"}
LOOP, OTHER_LOOP = ("train.py", 10), ("train.py", 20)


def kinds_after(
    line: Mapping[str, Any],
    *,
    superseded: int = 12,
    later: int = 30,
    loop_lines: Mapping[str, tuple[str, int]] | None = None,
) -> list[int]:
    """Returns the kinds of the superseded steps, of which each takes 10 ns."""
    return table_after(line, superseded, later, loop_lines or {})["kind"][:superseded].to_list()


def table_after(
    line: Mapping[str, Any],
    superseded: int,
    later: int,
    loop_lines: Mapping[str, tuple[str, int]],
) -> pl.DataFrame:
    count = superseded + later
    columns = {name: [0] * count for name in COUNTED}
    columns |= {"start": [10 * n for n in range(count)], "duration": [10] * count}
    columns["kind"] = [0] * superseded + [1] * later
    told = {"superseded": {"start": 0, "end": 10 * superseded, "by": 1, **line}}
    return with_superseded_steps(pl.DataFrame(columns), [told], KINDS, loop_lines)


def test_steps_of_the_same_work_get_its_kind() -> None:
    assert set(kinds_after({"is_same_work": True})) == {1}


def test_steps_of_the_same_loop_prepared_it() -> None:
    loops = {"inference": LOOP, "training": LOOP}
    assert set(kinds_after({}, loop_lines=loops)) == {BEFORE_FIRST_STEP}


def test_steps_of_another_loop_are_work_of_their_own() -> None:
    loops = {"inference": LOOP, "training": OTHER_LOOP}
    assert set(kinds_after({}, loop_lines=loops)) == {0}


def test_few_steps_of_another_loop_are_none() -> None:
    loops = {"inference": LOOP, "training": OTHER_LOOP}
    assert set(kinds_after({}, superseded=4, loop_lines=loops)) == {BEFORE_FIRST_STEP}


def test_more_steps_than_those_that_superseded_them_stay() -> None:
    loops = {"inference": LOOP, "training": LOOP}
    assert set(kinds_after({}, later=4, loop_lines=loops)) == {0}


def test_steps_of_the_loop_of_rollouts_are_none() -> None:
    loops = {"inference": LOOP, "training": OTHER_LOOP, "rollout": LOOP}
    assert set(kinds_after({}, later=4, loop_lines=loops)) == {BEFORE_FIRST_STEP}


def test_an_evaluation_before_training_keeps_its_time() -> None:
    table = table_after({"is_evaluation": True}, 12, 30, {})
    assert table["evaluation"].to_list() == [10] * 12 + [0] * 30
    assert set(table["kind"][:12]) == {BEFORE_FIRST_STEP}


def test_a_line_that_is_not_complete_changes_nothing() -> None:
    assert set(kinds_after({"by": None})) == {0}


def test_the_calls_of_a_phase_are_one_segment() -> None:
    table = table_after({"is_phase": True, "by": 2}, 12, 3, {})
    assert table["kind"].to_list() == [2, 1, 1, 1]
    assert table["start"].to_list() == [0, 120, 130, 140]
    assert table["duration"].to_list() == [120, 10, 10, 10]


def test_what_turns_out_to_be_a_phase_is_no_evaluation() -> None:
    columns = {name: [0] * 4 for name in COUNTED}
    columns |= {"start": [0, 10, 20, 30], "duration": [10] * 4, "kind": [0, 0, 0, 1]}
    told = {"start": 0, "end": 30, "by": 1, "is_evaluation": True}
    phase = {"start": 0, "end": 30, "by": 2, "is_phase": True}
    lines = [{"superseded": told}, {"superseded": phase}]
    table = with_superseded_steps(pl.DataFrame(columns), lines, KINDS, {})
    assert table["kind"].to_list() == [2, 1]
    assert table["evaluation"].to_list() == [0, 0]


def test_calls_that_lead_to_the_first_step_are_part_of_it() -> None:
    table = table_after({"is_part_of_step": True}, 12, 3, {})
    assert table["kind"].to_list() == [1, 1, 1]
    assert table["duration"].to_list() == [130, 10, 10]


def test_time_in_evaluation_mode_before_acting_was_known_is_no_evaluation() -> None:
    columns = {"start": [0, 10, 20], "evaluation": [5, 5, 5]}
    table = with_acting(pl.DataFrame(columns), [{"acts_in_environment": 20}])
    assert table["evaluation"].to_list() == [0, 0, 5]
