"""Two runs held against each other: parts, kinds of steps, and what is more than chance."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.ledgers import MS, Step, run_of

from selftime.compare import TABLES, compare
from selftime.compare.runs import compared_run_parts, compared_run_steps
from selftime.compare.section_statistics import difference_interval, sectioned_figure
from selftime.reports.compare import as_text
from selftime.run import Run
from selftime.trace import Trace

PAIRS = 200


def steps(number: int, ms: float, seed: int, **how: float) -> list[Step]:
    """Steps whose durations resemble their neighbours', as on a machine that gets hot and cool."""
    return [Step(each, counted=how) for each in neighbours(number, seed) * ms]


def neighbours(number: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Values around 1 that vary by 5 %, each much as the one before it: correlation 0.9."""
    draw = np.random.default_rng(seed).normal(0, 0.05 * np.sqrt(1 - 0.9**2), number)
    values = np.zeros(number)
    for at in range(1, number):
        values[at] = 0.9 * values[at - 1] + draw[at]
    return 1 + values


def verdicts(before: Run, after: Run) -> dict[tuple[str, str], str | None]:
    table = compared_run_steps(before, after)
    return {
        (kind, time): told for kind, time, told in table.select("kind", "time", "verdict").rows()
    }


def test_without_a_ledger_on_both_sides_nothing_is_compared() -> None:
    assert compared_run_parts(Run(), run_of([Step(1)])).height == 0
    assert compared_run_steps(run_of([Step(1)]), Run()).height == 0


def test_tables_are_as_they_are_declared() -> None:
    first, second = run_of(steps(60, 10, 1)), run_of([*steps(60, 10, 2), Step(4, "token")])
    found = compare(Trace(run=first), Trace(run=second))
    for name in ("run_parts", "run_steps"):
        table = found.tables()[name]
        assert table.height > 1
        assert table.schema == pl.Schema(TABLES[name].dtypes)
        for column in TABLES[name].columns:
            assert column.nullable or not table[column.name].null_count(), (name, column.name)


def test_a_run_does_not_differ_from_itself() -> None:
    run = run_of(steps(200, 10, 1))
    parts, told = compared_run_parts(run, run), compared_run_steps(run, run)
    assert (parts["difference"] == 0).all()
    assert (told["difference"] == 0).all()
    assert parts["verdict"].null_count() == parts.height
    assert told["verdict"].null_count() == told.height


def test_parts_add_up_to_the_wall_times_and_say_what_is_new() -> None:
    before, after = run_of([Step(10)] * 5), run_of([Step(10, counted={"compile": 3})] * 6)
    parts = compared_run_parts(before, after)
    assert parts["before"].sum() == before.wall_ns
    assert parts["after"].sum() == after.wall_ns
    assert dict(parts.select("part", "verdict").rows())["compile"] == "new"
    assert parts["difference"].abs().is_sorted(descending=True)


def test_a_kind_of_step_that_one_run_lacks() -> None:
    told = verdicts(run_of([Step(10)]), run_of([Step(10), Step(2, "token")]))
    assert told["token", "median"] == "new"
    assert verdicts(run_of([Step(1, "token")]), run_of([Step(9)]))["token", "median"] == "gone"


def test_slower_steps_are_told_with_an_interval_that_holds_the_difference() -> None:
    before, after = run_of(steps(400, 10, 1)), run_of(steps(400, 11, 2))
    assert verdicts(before, after)["training", "median"] == "slower"
    assert verdicts(after, before)["training", "median"] == "faster"
    row = compared_run_steps(before, after).row(0, named=True)
    assert row["low"] < MS < row["high"]


def test_few_steps_have_no_interval() -> None:
    row = compared_run_steps(run_of([Step(10)] * 9), run_of([Step(20)] * 9)).row(0, named=True)
    assert row["difference"] == 10 * MS
    assert row["low"] is row["high"] is row["verdict"] is None


def test_recorded_steps_are_left_out() -> None:
    usual, recorded = [Step(10)] * 30, [Step(90, recorded=True)] * 20
    row = compared_run_steps(run_of(usual), run_of([*usual, *recorded])).row(0, named=True)
    assert (row["difference"], row["steps_after"]) == (0, 30)


def test_slow_steps_are_told_with_their_number() -> None:
    after = run_of([*[Step(10)] * 30, Step(300), Step(200)])
    row = compared_run_steps(run_of([Step(10)] * 30), after).row(3, named=True)
    assert (row["time"], row["steps_before"], row["steps_after"]) == ("slow steps", 0, 2)
    assert row["after"] == 480 * MS


@pytest.mark.sweep(1)
@pytest.mark.parametrize("number", [300, 3_000])
def test_chance_is_seldom_taken_for_a_difference_though_neighbours_are_alike(number: int) -> None:
    median = lambda values: float(np.median(values))  # noqa: E731 - the figure of a section
    figures = [sectioned_figure(neighbours(number, seed), median, 5) for seed in range(2 * PAIRS)]
    pairs = list(zip(figures[::2], figures[1::2], strict=True))
    intervals = [difference_interval(before, after, 0.99) for before, after in pairs]
    false = sum(one is not None and (one[0] > 0 or one[1] < 0) for one in intervals)
    assert None not in intervals
    assert false <= 0.03 * PAIRS
    slower = [
        difference_interval(
            before,
            replace(
                after,
                whole=1.1 * after.whole,
                sections=tuple(1.1 * each for each in after.sections),
            ),
            0.99,
        )
        for before, after in pairs
    ]
    assert sum(one is not None and one[0] > 0 for one in slower) >= 0.9 * PAIRS


def test_a_change_of_many_times_is_no_percentage() -> None:
    runs = (run_of(steps(60, 10, 1)), run_of(steps(60, 1600, 2)))
    text = as_text(compare(*(Trace(run=run, source=run.source) for run in runs)))
    assert re.search(r"\(8[0-9] times\) longer", " ".join(text.split()))
    part = next(line for line in text.splitlines() if line.startswith("steps "))
    assert re.search(r" 1[0-9]{2} times", part)


def test_the_text_names_wall_time_parts_and_kinds_first() -> None:
    runs = (run_of(steps(60, 10, 1)), run_of([*steps(60, 12, 2), Step(500)]))
    text = as_text(compare(*(Trace(run=run, source=run.source) for run in runs)))
    assert text.startswith("Run: 1.1 s before, 1.7 s after; ")
    assert "one run each" in " ".join(text.split())
    assert text.index("THE RUN BY PART") < text.index("STEPS OF THE RUN, training")
    assert "60 and 61 steps" in text
    assert "Steps cannot be compared" not in text
