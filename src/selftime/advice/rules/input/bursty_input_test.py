"""Tests the rule `bursty_input` on edge cases that its documentation page omits."""

from importlib import import_module

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

STEPS = "stuvwxyz"
USAGE = '{"usage": {"wall_s": 1, "workers": {"count": 3, "cpu_s": 0}}}'


def drawing(waits_per_step: str, *, facts: str = "{}") -> str:
    """Draws steps of 16 ms, and of 32 ms with 16 ms of waiting for each `d` in `waits_per_step`."""
    widths = [8 if wait == "d" else 4 for wait in waits_per_step]
    marks = "".join(step * width for step, width in zip(STEPS, widths, strict=False))
    waits = "".join("dddd    " if wait == "d" else "    " for wait in waits_per_step)
    work = "".join("    aaaa" if wait == "d" else "bbbb" for wait in waits_per_step)
    names = "\n".join(f"{step} = ProfilerStep#{at}" for at, step in enumerate(STEPS))
    return f"""
        column = 4 ms
        facts = {facts}
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
    [said] = import_module("selftime.advice.rules").RULES["slow_input"](sketch(drawing("..d...dd")))
    assert isinstance(said, Checked)
    assert "bursty_input" in said.reason


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


def test_a_single_waiting_step_is_not_reported(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing("...d....")))
    assert isinstance(outcome, Checked)
