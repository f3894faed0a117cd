"""Tests the rule `slow_imports` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

RUN = """
    run | before 4 s: imports pandas 2 s at train.py:2, imports torch 2 s at train.py:1
    run | 20 training 100 ms
"""


def test_a_package_and_what_it_imports(judge: Judge[Finding]) -> None:
    [finding] = judge(RUN)
    assert "`pandas`" in finding.title
    assert finding.where.line == 2
    assert finding.saving.run_s is None
    assert finding.saving.run_upper_s == pytest.approx(2)


def test_a_small_package_is_checked(rule: Rule) -> None:
    [outcome] = rule(sketch(RUN.replace("pandas 2 s", "pandas 200 ms")))
    assert isinstance(outcome, Checked)
    assert "`pandas`" in outcome.reason
