"""What steps were that other events of a program superseded, as the ledger's reader finds out."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from selftime.ingest.superseded_steps import with_superseded_steps
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
