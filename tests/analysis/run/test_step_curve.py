"""Steps that are merged into pixels: none is lost, and no slow one is hidden by usual ones."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledgers import MS, STARTUP, Step, run_of

from selftime.errors import UsageError
from selftime.trace import Trace
from selftime.views.run_curve import run_curve


def curve(steps: list[Step], **options: Any) -> pl.DataFrame:
    return run_curve(Trace(run=run_of(steps)), **options)


def test_a_run_without_steps() -> None:
    assert curve([]).height == 0
    assert run_curve(Trace()).height == 0


def test_a_single_step_is_a_row() -> None:
    [row] = curve([Step(1_000, line=7)]).rows(named=True)
    assert (row["start"], row["count"], row["step"]) == (STARTUP, 1, 0)
    assert row["shortest"] == row["median"] == row["longest"] == 1_000 * MS
    assert row["line"] == 7


def test_steps_of_a_pixel_are_one_row_and_a_slow_one_its_own() -> None:
    usual = [Step(10), Step(12), Step(11)]
    steps = [*usual, *usual, Step(300, counted={"data_wait": 290}), *usual]
    rows = curve(steps, pixels=1).sort("slow")
    assert rows["count"].to_list() == [9, 1]
    assert rows["shortest"].to_list() == [10 * MS, 300 * MS]
    assert rows["longest"].to_list() == [12 * MS, 300 * MS]
    assert rows.select("step", "cause", "data_wait").row(1) == (6, "data_wait", 290 * MS)


def test_the_stretch_that_is_asked_for() -> None:
    steps = [Step(10)] * 10
    rows = curve(steps, start=STARTUP + 20 * MS, end=STARTUP + 50 * MS, pixels=1000)
    assert rows["step"].to_list() == [2, 3, 4]


@pytest.mark.parametrize("options", [{"pixels": 0}, {"start": 5, "end": 5}])
def test_what_cannot_be_drawn_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="write"):
        curve([Step(10)], **options)


@given(
    st.lists(
        st.builds(Step, st.integers(1, 400), st.sampled_from(["a", "b"]), recorded=st.booleans()),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 7),
)
def test_every_step_is_in_a_row(steps: list[Step], pixels: int) -> None:
    rows = curve(steps, pixels=pixels)
    assert rows["count"].sum() == len(steps)
    assert rows["longest"].max() == max(step.ms for step in steps) * MS
    assert rows["shortest"].min() == min(step.ms for step in steps) * MS
    assert (rows["shortest"] <= rows["median"]).all()
    assert (rows["median"] <= rows["longest"]).all()
    assert rows.height <= pixels * 8  # a pixel has two kinds, slow or not, recorded or not
