"""Tests the rule `recurring_slow_steps` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Finding, Rule, Unknown
from selftime.testing import Judge, sketch

SLOW = """
    run | 9 training 100 ms
    run | training 900 ms: {}
"""


def test_the_time_beyond_usual_steps_is_the_most(judge: Judge[Finding]) -> None:
    [finding] = judge("run | before 1 s" + 3 * SLOW.format("program 800 ms at train.py:50 plot"))
    assert finding.saving.run_s is None
    assert finding.saving.run_upper_s == pytest.approx(2.4)
    assert (finding.where.line, finding.where.function) == (50, "plot")


@pytest.mark.parametrize(
    "told",
    [
        "checkpoint save 800 ms at train.py:50 main",
        "data_wait 800 ms, program 800 ms at train.py:50 main",
        "garbage_collection 800 ms, program 800 ms at train.py:50 main",
        "program 800 ms",
    ],
)
def test_causes_of_other_rules_and_without_a_line_are_left_out(told: str, rule: Rule) -> None:
    said = rule(sketch("run | before 1 s" + 3 * SLOW.format(told)))
    assert not [outcome for outcome in said if isinstance(outcome, Finding)]


def test_what_an_evaluation_takes_is_taken_off(judge: Judge[Finding]) -> None:
    told = "evaluation 400 ms, program 800 ms at train.py:50 main"
    [finding] = judge("run | before 1 s" + 3 * SLOW.format(told))
    assert finding.saving.run_upper_s == pytest.approx(1.2, rel=0.01)


def test_steps_in_which_workers_start_are_left_out(rule: Rule) -> None:
    start = "run | iterator 1 ms with 2 new workers at train.py:9 main"
    step = "run | training 900 ms: program 800 ms at train.py:50 main"
    drawn = "run | before 1 s\n" + 3 * f"run | 9 training 100 ms\n{start}\n{step}\n"
    assert not [outcome for outcome in rule(sketch(drawn)) if isinstance(outcome, Finding)]


@pytest.mark.parametrize(("usual", "is_told"), [(9, True), (2, True), (1, False)])
def test_steps_of_two_sizes_are_not_slow(rule: Rule, usual: int, is_told: bool) -> None:
    """Calls within an optimizer's step and whole rounds of a loop, say, are steps of one kind."""
    rounds = f"""
    run | {usual} training 100 ms
    run | 2 training 120 ms
    run | training 900 ms: program 800 ms at train.py:50 rollout
    run | training 900 ms: program 800 ms at train.py:50 rollout
    """
    found = [one for one in rule(sketch("run | before 1 s" + rounds)) if isinstance(one, Finding)]
    assert bool(found) == is_told


USED = (
    'facts = {{"threads": {threads}, "cores": {{"effective": 2, "affinity": 2, "logical": 2}}, '
    '"usage": {{"wall_s": 1, "process_s": 0.6, "workers": {{"count": 0, "cpu_s": 0}}, '
    '"busy": {busy}, "steal": 0}}}}\nrun | before 1 s'
)
COMPUTING = 3 * SLOW.format("program 800 ms at train.py:50 main")


def test_computing_is_slow_where_other_programs_take_the_cores(rule: Rule) -> None:
    [outcome] = rule(sketch(USED.format(threads=2, busy=1.0) + COMPUTING))
    assert isinstance(outcome, Unknown)
    assert "without other programs: they used 1.4 of the 2 cores" in outcome.needs


@pytest.mark.parametrize(("threads", "busy"), [(2, 0.4), (1, 0.8)])
def test_other_programs_that_leave_enough_cores_are_no_cause(
    threads: int, busy: float, judge: Judge[Finding]
) -> None:
    assert judge(USED.format(threads=threads, busy=busy) + COMPUTING)


def test_what_is_no_computing_stays_a_finding_on_a_busy_machine(judge: Judge[Finding]) -> None:
    logging = 3 * SLOW.format("logging 800 ms at train.py:50 main")
    assert judge(USED.format(threads=2, busy=1.0) + logging)


def with_samples(usual: str, told: str) -> str:
    """A run in which every tenth step is slow, with samples of the usual ones."""
    return "run | before 1 s" + 3 * (
        f"\n    run | 9 training 100 ms\n    run | 15 samples at {usual}"
        f"\n    run | training 900 ms: {told}\n"
    )


APART = "program 500 ms at train.py:50 sample, program 300 ms at train.py:52 sample"


def test_a_function_that_usual_steps_do_not_run_is_one_cause(judge: Judge[Finding]) -> None:
    [finding] = judge(with_samples("train.py:12 step", APART))
    assert finding.title == "3 steps run `sample`, which usual ones do not, 2.4 s in all"
    assert (finding.where.line, finding.where.function) == (50, "sample")
    assert finding.saving.run_upper_s == pytest.approx(2.4)
    evidence = {told.metric: told.value for told in finding.evidence}
    assert evidence["steps from one to the next"] == 10
    assert evidence["most of it in one step"] == pytest.approx(800)


def test_a_function_that_usual_steps_run_is_told_by_line(judge: Judge[Finding]) -> None:
    both = judge(with_samples("train.py:12 sample", APART))
    assert [finding.where.line for finding in both] == [50, 52]
    assert all("at this line" in finding.title for finding in both)


def test_a_busy_machine_is_no_reason_to_run_another_function(rule: Rule) -> None:
    def outcomes(usual: str) -> list[str]:
        drawn = with_samples(usual, APART).removeprefix("run | before 1 s")
        told = rule(sketch(USED.format(threads=2, busy=1.0) + drawn))
        return [type(outcome).__name__ for outcome in told]

    assert outcomes("train.py:12 step") == ["Finding"]
    assert outcomes("train.py:12 sample") == ["Unknown"]
