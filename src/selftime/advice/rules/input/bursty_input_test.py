"""Edges of `bursty_input` that its page does not draw."""

from importlib import import_module

import pytest

from selftime.advice.base import Checked, Finding, Rule
from selftime.testing import Judge, sketch

STEPS = "stuvwxyz"
USAGE = '{"usage": {"wall_s": 1, "workers": {"count": 3, "cpu_s": 0}}}'


def loop(late: str, *, facts: str = "{}") -> str:
    """Steps of 16 ms; those marked wait for 16 ms more."""
    widths = [8 if wait == "d" else 4 for wait in late]
    marks = "".join(step * width for step, width in zip(STEPS, widths, strict=False))
    waits = "".join("dddd    " if wait == "d" else "    " for wait in late)
    work = "".join("    aaaa" if wait == "d" else "bbbb" for wait in late)
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


def test_all_waits_are_the_bound(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.where.line == 9
    assert finding.confidence == "low"
    assert finding.saving.low_ms == 0


@pytest.mark.parametrize(
    ("late", "facts"), [("..d..d..", USAGE), (".d.d.d..", "{}"), ("..d.d.d.", "{}")]
)
def test_a_rhythm_means_too_few_workers(rule: Rule, late: str, facts: str) -> None:
    trace = sketch(loop(late, facts=facts))
    [outcome] = rule(trace)
    assert isinstance(outcome, Checked)
    [said] = import_module("selftime.advice.rules").RULES["slow_input"](trace)
    assert isinstance(said, Finding)
    assert said.covers == ("A2",)


def test_bursts_are_not_said_to_be_too_few_workers() -> None:
    [said] = import_module("selftime.advice.rules").RULES["slow_input"](sketch(loop("..d...dd")))
    assert isinstance(said, Checked)
    assert "bursty_input" in said.reason


def test_waits_count_as_they_are_and_not_as_in_a_short_step() -> None:
    """Pairs of batches from two workers: the typical step is that which need not wait."""
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


def test_one_step_that_waits_is_none(rule: Rule) -> None:
    [outcome] = rule(sketch(loop("...d....")))
    assert isinstance(outcome, Checked)
