"""Tests the rule `first_batch_wait` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

RUN = """
    run | before 2 s
    run | iterator 1 s with 4 new workers at train.py:9 main
    run | training 3100 ms: epoch_boundary 3 s
    run | 49 training 100 ms
"""


def test_the_whole_wait_is_the_most_that_can_be_saved(judge: Judge[Finding]) -> None:
    [finding] = judge(RUN)
    assert finding.saving.run_s is None
    assert finding.saving.run_upper_s == pytest.approx(3)
    assert finding.where.line == 9
    assert [evidence.value for evidence in finding.evidence] == [3000, 4]


def test_later_waits_do_not_count(rule: Rule) -> None:
    late = RUN.replace("run | training 3100 ms", "run | 9 training 100 ms\n run | training 3100 ms")
    [outcome] = rule(sketch(late))
    assert isinstance(outcome, Checked)
