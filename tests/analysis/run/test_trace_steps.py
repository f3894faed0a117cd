"""The steps of a run that a trace holds are found by the time at which they end."""

from dataclasses import replace

from tests.ledgers import EPOCH, MS, STARTUP, Step, run_of

from selftime.analysis.run.recorded_step_coverage import (
    recorded_step_coverage,
    step_starts_in_trace,
)
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.run_steps import run_steps

STEPS = [Step(3), Step(4), *[Step(4, recorded=True)] * 3, Step(3), Step(3)]


def recorded(origin: int | None = EPOCH + STARTUP + 7 * MS) -> Trace:
    """A trace of the third to the fifth step; the recorder takes the first 40 us of each."""
    legend = "column = 40 us\na = ProfilerStep#2\nb = ProfilerStep#3\nc = ProfilerStep#4\n"
    lane = "".join(f" {letter * 99}" for letter in "abc")
    return replace(sketch(f"{legend}mark 1 | {lane}"), origin=origin, run=run_of(STEPS))


def test_a_step_is_found_although_the_recorder_worked_before_it() -> None:
    trace = recorded()
    assert steps_with_counted_flags(trace)["start"].to_list() == [40_000, 4_040_000, 8_040_000]
    table = run_steps(trace)
    known = table.drop_nulls("trace_start").select("step", "trace_start").rows()
    assert known == [(2, 40_000), (3, 4_040_000), (4, 8_040_000)]


def test_the_steps_of_another_recording_of_the_run_are_not_in_this_one() -> None:
    assert step_starts_in_trace(recorded(EPOCH + STARTUP + 500 * MS)).height == 0


def test_a_recording_that_was_given_up_before_represents_nothing() -> None:
    calls = [Step(1, kind="inference", recorded=True), *[Step(1, kind="inference")] * 9]
    trace = recorded(EPOCH + STARTUP + 17 * MS)
    trace = replace(trace, run=run_of([*calls, *STEPS]))
    coverage = recorded_step_coverage(trace)
    assert coverage is not None
    assert (coverage.kinds, coverage.steps) == (("training",), 7)
    other = recorded_step_coverage(replace(trace, origin=None))
    assert other is not None
    assert (other.kinds, other.steps) == (("training", "inference"), 17)


def test_without_the_time_of_day_no_step_is_found() -> None:
    assert step_starts_in_trace(recorded(None)).height == 0
    trace = recorded()
    assert step_starts_in_trace(replace(trace, run=replace(trace.run, began_at=None))).height == 0


def test_a_ledger_alone_holds_no_step() -> None:
    assert run_steps(Trace(run=run_of(STEPS)))["trace_start"].null_count() == len(STEPS)
