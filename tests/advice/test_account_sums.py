"""The account's rows add up, whatever was recorded, and no row has negative time."""

import polars as pl
from hypothesis import given
from tests.analysis.graph.drawn import traces

from selftime.advice.account.account_building import account_of_step
from selftime.advice.account.account_rows import StepAccount
from selftime.advice.advise import advise
from selftime.analysis.account.step_account import account_segments
from selftime.analysis.steps.kinds_of_steps import kinds_of_steps
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.account import account


def assert_rows_add_up(found: StepAccount) -> None:
    times = [row.ns for row in found.rows]
    assert min(times) > 0
    assert sum(times) == round(found.step_ms * 1e6)
    assert sum(round(part.ms * 1e6) for part in found.parts) == sum(times)
    verdicts = (found.found_ms, found.needed_ms, found.small_ms, found.unexplained_ms)
    assert sum(round(ms * 1e6) for ms in verdicts) == sum(times)
    assert sum(row.share for row in found.rows) < 1.000001
    assert all(row.at_most_ms is not None and 0 <= row.at_most_ms <= row.ms for row in found.rows)
    for kind in found.kinds:
        assert_rows_add_up(kind.account)


@given(traces())
def test_segments_of_each_step_are_contiguous(trace: Trace) -> None:
    segments, steps = account_segments(trace), steps_with_counted_flags(trace)
    for begin, done in steps.select("begin", "done").iter_rows():
        own = segments.filter(pl.col("start").is_between(begin, done, closed="left"))
        ends = [begin, *own["end"]]
        assert (own["end"] > own["start"]).all()
        assert [*own["start"], done] == ends or (begin == done and not own.height)


@given(traces())
def test_rows_of_views_add_up_to_the_counted_steps(trace: Trace) -> None:
    steps = steps_with_counted_flags(trace)
    steps = steps.filter("counted") if steps["counted"].any() else steps
    whole = (steps["done"] - steps["begin"]).sum()
    for by in ("class", "what", "line", "step"):
        table = account(trace, by=by)
        assert table["time"].sum() == whole
        assert (table["time"] > 0).all()
        assert (table["inferred"] <= table["time"]).all()


@given(traces())
def test_rows_of_kinds_add_up_to_the_steps_of_the_kind(trace: Trace) -> None:
    steps = kinds_of_steps(trace).filter("is_chosen")
    table = account(trace, by="kind")
    for kind in steps["kind"].unique():
        own = steps.filter(kind=kind)
        rows = table.filter(kind=kind)
        assert rows["time"].sum() == (own["done"] - own["begin"]).sum()
        assert account(trace, kind=kind)["time"].sum() == rows["time"].sum()


@given(traces())
def test_rows_with_verdicts_add_up_to_the_step(trace: Trace) -> None:
    found = account_of_step(trace, ())
    if found is not None:
        assert_rows_add_up(found)


@given(traces())
def test_rows_that_findings_claim_add_up_too(trace: Trace) -> None:
    said = advise(trace).account
    if said is not None:
        assert_rows_add_up(said)


def test_steps_of_equal_number_are_as_many_as_they_are() -> None:
    drawing = "mark 1 | pppp pppp pppp\ncpu 1 | kkkk kkkk kkkk\np = ProfilerStep#1\nk = aten::mm"
    found = account_of_step(sketch("column = 1 ms\n" + drawing), ())
    assert found is not None
    assert (found.steps, found.step_ms) == (2, 4.0)
    assert account(sketch("column = 1 ms\n" + drawing))["per_step"].sum() == 4e6
