"""Tests the rule `unpaid_compilation` on sketched runs."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from selftime.advice.rule_definition import Finding, Rule, Unknown
from selftime.testing import Judge, sketch

RUN = """
    run | before 1 s
    run | compiled forward 30 s at model.py:3
    run | training 30100 ms: compile 30 s
    run | {} training 100 ms
"""


def test_what_steps_gain_is_taken_off(judge: Judge[Finding]) -> None:
    [finding] = judge(RUN.format(19))
    assert finding.saving.run_s == pytest.approx(28)
    assert finding.saving.run_low_s == pytest.approx(30 - 9 * 2)
    assert finding.saving.run_high_s == pytest.approx(30)
    assert finding.confidence == "medium"


def test_between_ten_and_one_nobody_can_tell(rule: Rule) -> None:
    [outcome] = rule(sketch(RUN.format(149)))
    assert isinstance(outcome, Unknown)
    assert "3.00 times as fast" in outcome.needs


def test_of_a_run_that_was_cut_nobody_can_tell(rule: Rule) -> None:
    trace = sketch(RUN.format(19))
    facts = MappingProxyType({"status": "ended by SIGTERM"})
    [outcome] = rule(replace(trace, run=replace(trace.run, facts=facts)))
    assert isinstance(outcome, Unknown)
    assert "30 s of compiling" in outcome.needs
