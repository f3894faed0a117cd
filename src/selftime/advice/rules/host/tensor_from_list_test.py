"""Tests the rule `tensor_from_list` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

DRAWING = """
    column = 10 us
    mark 1   | {steps}
    python 1 | {main}
    python 1 | {calls}
    cpu 1    | {operators}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = train.py(3): main
    c = {called}
    d = aten::to; line = train.py:20 main
    m = aten::mm
"""


def drawing(
    calls: str,
    operators: str = "      d mmmmmmmmmmmm",
    called: str = "<built-in method tensor of type object at 0x7f00>",
    width: int = 20,
) -> str:
    rows = {"calls": 3 * calls.ljust(width), "operators": 3 * operators.ljust(width)}
    steps = "".join(letter * width for letter in "stu")
    return DRAWING.format(**rows, called=called, steps=steps, main="f" * 3 * width)


def test_the_line_and_the_time_outside_of_operators_are_told(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("cccccccc"))
    assert (finding.where.file, finding.where.line) == ("train.py", 20)
    assert finding.count_per_step == 1
    assert finding.evidence[0].value == pytest.approx(0.07)
    assert finding.saving.estimate_ms == pytest.approx(0.6 * 0.07)
    assert finding.saving.upper_ms == pytest.approx(0.07)


def test_short_calls_do_not_count(judge: Judge[Finding]) -> None:
    assert not judge(drawing("c c c c c c c", " " * 16 + "mmmm"))


def test_an_array_of_numpy_is_made_by_no_call_of_torch(judge: Judge[Finding]) -> None:
    assert not judge(drawing("cccccccc", called="<built-in function asarray>"))


def test_calls_below_a_twentieth_of_the_step_are_ruled_out(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing("ccc", "   " + "m" * 77, width=80)))
    assert isinstance(outcome, Checked)
    assert outcome.upper_ms == pytest.approx(0.03)
