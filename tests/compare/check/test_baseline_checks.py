"""Counts decide; times are compared between runs of one kind of machine and load, or not at all."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from selftime.compare.check.baseline_checks import (
    TimeComparison,
    check_count,
    note_on_larger_steps,
)
from selftime.compare.check.baseline_files import Baseline
from selftime.compare.check.measured_runs import MeasuredRun
from selftime.compare.check.run_checks import MeasureCheck
from selftime.compare.comparability import Comparability

MACHINE = Comparability((), {"torch": "2.9"}, 2, None, None, (), "Processor 3000", 2.0)


def run(
    *counts: float, ms: float = 10.0, load: float | None = 0.1, like: Comparability = MACHINE
) -> MeasuredRun:
    values = {"host_ms": np.full(8, ms), "operators": np.array(counts or (100.0,))}
    return MeasuredRun("run.json", like, values, {}, load)


def counted(before: Sequence[float], after: Sequence[float]) -> MeasureCheck:
    return check_count("operators", [run(*before)], [run(*after)])


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ([100] * 7, [100] * 7, "within"),
        ([100] * 7, [101] * 7, "over"),
        ([100] * 7, [101], "unknown"),  # a recording that a busy machine cut short
        ([100] * 7, [101] * 2, "over"),
        ([100], [101] * 2, "unknown"),
        ([101] * 7, [100] * 7, "better"),
        ([100] * 7, [100] * 6 + [150], "within"),  # what happens in every tenth step
        ([100] * 7, [100] * 3 + [150] * 4, "over"),  # chance has it in 1 of 28
        ([100] * 6 + [150], [100] * 7, "within"),
    ],
)
def test_a_count_is_over_if_more_steps_are_than_chance_has_it(
    before: list[float], after: list[float], state: str
) -> None:
    found = counted(before, after)
    assert found.state == state


def test_single_larger_steps_are_told() -> None:
    before, after = [run(*[100] * 7)], [run(*[100] * 6, 150)]
    note = note_on_larger_steps(check_count("operators", before, after), before, after)
    assert "1 of 7 steps exceed the baseline's `operators`" in note
    assert "chance of 50 %" in note
    assert not note_on_larger_steps(check_count("operators", before, before), before, before)


BEFORE = Baseline(tuple(run(ms=ms) for ms in (9.8, 10.0, 10.1, 9.9, 10.2)))


def timed(*after: MeasuredRun, baseline: Baseline = BEFORE) -> MeasureCheck:
    return TimeComparison.of_runs(baseline, after).check("host_ms", 0.05, 3)


@pytest.mark.parametrize(
    ("ms", "state"), [(10.3, "within"), (10.45, "within"), (13.0, "over"), (7.0, "better")]
)
def test_a_time_is_over_if_it_is_more_than_runs_vary(ms: float, state: str) -> None:
    found = timed(run(ms=ms))
    assert found.state == state, found
    assert found.low is not None
    assert found.high is not None


def test_runs_that_vary_so_much_that_nothing_is_found_are_no_gate() -> None:
    wild = Baseline(tuple(run(ms=ms) for ms in (5, 10, 20, 40)))
    found = timed(run(ms=12), baseline=wild)
    assert found.state == "unknown"
    assert "record more runs" in found.why


@pytest.mark.parametrize(
    ("load", "ms", "state", "why"),
    [
        (1.9, 30.0, "unknown", "the load may have made it slower"),
        (1.9, 10.0, "within", ""),  # not even the load made it slower
        (0.3, 30.0, "over", ""),
        (None, 30.0, "over", ""),
    ],
)
def test_what_the_load_may_explain_is_not_said(
    load: float | None, ms: float, state: str, why: str
) -> None:
    found = timed(run(ms=ms, load=load))
    assert found.state == state
    assert why in found.why


def test_a_program_that_waited_for_cores_is_not_called_slower() -> None:
    """Whether others use two cores of two with two threads or with twenty, they use two."""
    waited = replace(run(ms=30.0), core_wait=0.8)
    calm = Baseline(tuple(replace(one, core_wait=0.05) for one in BEFORE.runs))
    found = timed(waited, baseline=calm)
    assert found.state == "unknown"
    assert "the program waited for a core 80 % of the time, which others had" in found.why
    assert timed(replace(waited, core_wait=0.1), baseline=calm).state == "over"
    assert timed(replace(run(), core_wait=0.8), baseline=calm).state == "within"
    busy = Baseline(tuple(replace(one, core_wait=0.8) for one in BEFORE.runs))
    assert "that of the baseline waited for a core 80 %" in timed(run(), baseline=busy).why


def test_a_quieter_machine_may_hide_that_a_program_is_slower() -> None:
    busy = Baseline(tuple(replace(one, load=1.8) for one in BEFORE.runs))
    assert "may hide" in timed(run(), baseline=busy).why
    assert timed(run(ms=30.0), baseline=busy).state == "over"


@pytest.mark.parametrize(
    ("like", "told"),
    [
        (replace(MACHINE, processor="Other"), "the processors differ: `Processor 3000` before"),
        (replace(MACHINE, cores=64.0), "the numbers of cores differ: `2` before, `64` after"),
        (replace(MACHINE, versions={"torch": "2.8"}), "the versions of PyTorch differ"),
        (replace(MACHINE, devices=("A100",)), "the devices differ"),
        (replace(MACHINE, processor=None), "this recording does not name its processor"),
        (replace(MACHINE, versions={}), "does not tell its version of PyTorch"),
    ],
)
def test_unlike_machines_are_refused_in_a_sentence(like: Comparability, told: str) -> None:
    found = timed(run(like=like))
    assert (found.state, found.limit) == ("unknown", None)
    assert told in found.why


def test_a_baseline_of_few_runs_or_mostly_of_another_machine_is_none_for_times() -> None:
    found = timed(run(), baseline=Baseline(BEFORE.runs[:2]))
    assert "the baseline is of 2 runs, which does not tell how runs vary" in found.why
    other = replace(MACHINE, processor="Other")
    mixed = Baseline((*(run(ms=ms, like=other) for ms in (1, 2, 3)), *BEFORE.runs))
    assert timed(run(), baseline=mixed).state == "within"  # by the five that are alike
