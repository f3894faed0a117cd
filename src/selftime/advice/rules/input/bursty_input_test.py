"""Tests the rule `bursty_input` on edge cases that its documentation page omits."""

from importlib import import_module

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch

STEPS = "stuvwxyz"
USAGE = '{"usage": {"wall_s": 1, "workers": {"count": 3, "cpu_s": 0}}}'
ONE_WORKER = '{"usage": {"wall_s": 1, "workers": {"count": 1, "cpu_s": 0}}}'
LEDGER = """
    run | before 10 ms
    run | iterator 1 ms with 2 new workers and 8 batches ahead at train.py:9 main
    run | 16 training 16 ms
"""


def drawing(waits_per_step: str, *, facts: str = "{}", run: str = "") -> str:
    """Draws steps of 16 ms, and of 32 ms with 16 ms of waiting for each `d` in `waits_per_step`."""
    widths = [8 if wait == "d" else 4 for wait in waits_per_step]
    marks = "".join(step * width for step, width in zip(STEPS, widths, strict=False))
    waits = "".join("dddd    " if wait == "d" else "    " for wait in waits_per_step)
    work = "".join("    aaaa" if wait == "d" else "bbbb" for wait in waits_per_step)
    names = "\n".join(f"{step} = ProfilerStep#{at}" for at, step in enumerate(STEPS))
    return f"""
        column = 4 ms
        facts = {facts}{run}
        mark 1 | {marks}
        mark 1 | {waits}
        cpu 1  | {work}
        d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
        {names}
    """


def test_the_finding_has_low_confidence_and_may_save_nothing(
    rule: Rule, judge: Judge[Finding]
) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.where.line == 9
    assert finding.confidence == "low"
    assert finding.saving.low_ms == 0


@pytest.mark.parametrize(
    ("waits_per_step", "facts"), [("..d..d..", USAGE), (".d.d.d..", "{}"), ("..d.d.d.", "{}")]
)
def test_regular_waits_are_reported_as_too_few_workers(
    rule: Rule, waits_per_step: str, facts: str
) -> None:
    trace = sketch(drawing(waits_per_step, facts=facts))
    [outcome] = rule(trace)
    assert isinstance(outcome, Checked)
    [said] = import_module("selftime.advice.rules").RULES["slow_input"](trace)
    assert isinstance(said, Finding)
    assert said.covers == ("A2",)


def test_irregular_waits_are_not_reported_as_too_few_workers() -> None:
    trace = sketch(drawing("..d....d", facts=ONE_WORKER))
    [said] = import_module("selftime.advice.rules").RULES["slow_input"](trace)
    assert isinstance(said, Checked)
    assert "bursty_input" in said.reason


def test_waits_tell_neither_where_the_length_of_the_queue_is_unknown(rule: Rule) -> None:
    trace = sketch(drawing("..d....d"))
    [outcome] = rule(trace)
    assert isinstance(outcome, Checked)
    [said] = import_module("selftime.advice.rules").RULES["slow_input"](trace)
    assert isinstance(said, Finding)
    assert said.confidence == "low"


def ledger_of_waits(*steps_between: int) -> str:
    """Draws a run whose full queue bridges 16 steps; then waits come after so many steps each."""
    waits = "".join(
        f"    run | {steps} training 16 ms\n    run | training 64 ms: data_wait 48 ms\n"
        for steps in steps_between
    )
    return LEDGER + waits


@pytest.mark.parametrize("steps_between", [(1, 1, 1, 1), (3, 1, 4, 2)])
def test_workers_that_never_rest_after_the_queue_drained_are_too_slow(
    rule: Rule, steps_between: tuple[int, ...]
) -> None:
    """The recorded steps may look like a burst: the run decides."""
    run = ledger_of_waits(*steps_between)
    trace = sketch(drawing("..d...d.", facts=ONE_WORKER, run=run))
    assert isinstance(rule(trace)[0], Checked)
    [said] = import_module("selftime.advice.rules").RULES["slow_input"](trace)
    assert isinstance(said, Finding)
    [whole] = import_module("selftime.advice.rules").RULES["data_waits_of_run"](trace)
    assert isinstance(whole, Finding)
    assert whole.fix.code is None


def test_of_workers_that_rest_between_two_waits_the_queue_is_too_short(rule: Rule) -> None:
    trace = sketch(drawing("..d..d..", facts=USAGE, run=ledger_of_waits(9, 14, 12)))
    assert isinstance(rule(trace)[0], Finding)
    [whole] = import_module("selftime.advice.rules").RULES["data_waits_of_run"](trace)
    assert isinstance(whole, Finding)
    assert "prefetch_factor" in (whole.fix.code or "")


@pytest.mark.parametrize("name", ["slow_input", "saturated_cores", "bursty_input"])
def test_recorded_steps_that_do_not_wait_say_nothing_of_a_run_that_does(name: str) -> None:
    trace = sketch(f"""
        column = 1 ms{ledger_of_waits(1, 1, 1, 1)}
        mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
        mark 1 | d           d           d
        cpu 1  |  aaaaaaaaaaa aaaaaaaaaaa aaaaaaaaaaa
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    """)
    [said] = import_module("selftime.advice.rules").RULES[name](trace)
    assert isinstance(said, Checked)
    assert "4 of the 23 steps of the run do" in said.reason
    assert said.upper_ms is None


def test_waits_count_in_the_mean_step_if_the_typical_step_has_none() -> None:
    """Two workers deliver batches in pairs, so that the typical step does not wait."""
    drawing = """
        column = 2 ms
        facts = {"usage": {"wall_s": 1, "workers": {"count": 2, "cpu_s": 2, "queued_s": 0}}}
        mark 1 | stttttttttuvvvvvvvvvwxxxxxxxxxyz
        mark 1 |  ddddddddd ddddddddd ddddddddd
        cpu 1  | a         a         a         aa
        s = ProfilerStep#0
        t = ProfilerStep#1
        u = ProfilerStep#2
        v = ProfilerStep#3
        w = ProfilerStep#4
        x = ProfilerStep#5
        y = ProfilerStep#6
        z = ProfilerStep#7
        d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    """
    [said] = import_module("selftime.advice.rules").RULES["slow_input"](sketch(drawing))
    assert isinstance(said, Finding)


def test_of_a_single_waiting_step_it_is_unknown_whether_others_wait(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing(".d..")))
    assert isinstance(outcome, Unknown)
    assert "whether the wait in 1 of" in outcome.needs
