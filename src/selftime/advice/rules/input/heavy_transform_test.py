"""Tests the rule `heavy_transform` on edge cases that its documentation page omits."""

from importlib import import_module

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch

LOADING = """
    column = 1 ms
    facts = {{"cores": {{"effective": 1}}, "threads": 1}}
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | ggggggg     ggggggg     ggggggg
    python 1 | {inner}     {inner}     {inner}
    cpu 1    | {work} aaaa {work} aaaa {work} aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    g = data.py(12): __getitem__
    h = data.py(30): augment
    k = aten::sort
"""


def test_the_innermost_slow_function_is_named(judge: Judge[Finding]) -> None:
    [finding] = judge(LOADING.format(inner=" hhhhh ", work=" " * 7))
    assert finding.where.function == "augment"
    assert finding.where.line == 30
    assert finding.saving.estimate_ms == pytest.approx(0.9 * 5)


def test_a_function_with_most_time_of_its_own_is_named(judge: Judge[Finding]) -> None:
    [finding] = judge(LOADING.format(inner="    hh ", work=" " * 7))
    assert finding.where.function == "__getitem__"
    assert finding.saving.upper_ms == pytest.approx(5)


def test_time_in_operators_gives_only_an_upper_bound(judge: Judge[Finding]) -> None:
    [finding] = judge(LOADING.format(inner=" " * 7, work="kkkkkkk"))
    assert finding.saving.estimate_ms is None
    assert finding.saving.upper_ms == pytest.approx(7)


def test_if_workers_help_only_workers_are_advised(rule: Rule) -> None:
    drawing = rule.drawings("Silent on")[0]
    [outcome] = rule(sketch(drawing))
    assert isinstance(outcome, Checked)
    assert "slow_input" in outcome.reason
    said = import_module("selftime.advice.rules").RULES["slow_input"](sketch(drawing))
    assert any(isinstance(outcome, Finding) for outcome in said)


def test_without_python_frames_the_outcome_is_unknown(rule: Rule) -> None:
    lines = LOADING.format(inner=" " * 7, work=" " * 7).splitlines()
    [outcome] = rule(sketch("\n".join(line for line in lines if "python" not in line)))
    assert isinstance(outcome, Unknown)
