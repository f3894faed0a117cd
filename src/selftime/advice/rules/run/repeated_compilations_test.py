"""Tests the rule `repeated_compilations` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge, sketch

FIRST = """
    run | before 1 s
    run | compiled forward 2 s at model.py:3
    run | training 2100 ms: compile 2 s
    run | 20 training 100 ms
"""
AGAIN = """
    run | compiled forward 1 s at model.py:3: 0/0: tensor 'x' size mismatch  # y = x  # a.py:4
    run | training 1100 ms: compile 1 s
    run | 20 training 100 ms
"""


def test_once_again_may_be_needed_and_more_is_not(judge: Judge[Finding]) -> None:
    [once] = judge(FIRST + AGAIN)
    assert once.saving.run_low_s == 0
    assert once.saving.run_s == pytest.approx(1)
    assert once.confidence == "medium"
    [often] = judge(FIRST + 3 * AGAIN)
    assert often.saving.run_low_s == pytest.approx(2)
    assert often.saving.run_s == pytest.approx(3)
    assert often.confidence == "high"


def test_it_tells_the_guard_and_where_the_function_is_defined(judge: Judge[Finding]) -> None:
    [finding] = judge(FIRST + 2 * AGAIN)
    assert finding.title == "`forward` is compiled 2 more times: `tensor 'x' size mismatch`"
    assert (finding.where.file, finding.where.line) == ("model.py", 3)
    assert finding.where.how == "definition"


def test_no_more_is_saved_than_was_spent_compiling(judge: Judge[Finding]) -> None:
    """Compilations within others are measured twice, and counted once."""
    within = "    run | compiled inner 1 s at model.py:8: 1/0: tensor 'x' size mismatch\n"
    found = judge(FIRST + AGAIN + within)
    assert len(found) == 2
    assert sum(finding.saving.run_s or 0 for finding in found) < 2


def test_two_functions_are_two_causes(rule: Rule) -> None:
    other = AGAIN.replace("forward", "loss").replace(":3:", ":9:")
    assert len(rule(sketch(FIRST + AGAIN + other))) == 2
