"""Tests the rule `late_first_batch` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch


def test_the_saving_leaves_the_time_of_a_usual_batch(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.where.line == 9
    assert finding.saving.estimate_ms == pytest.approx(12 - 1)
    assert finding.saving.upper_ms == pytest.approx(12)


def test_loaders_without_workers_are_not_reported(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[0].replace("_MultiProcessing", "_SingleProcess")
    [outcome] = rule(sketch(drawing))
    assert isinstance(outcome, Checked)


def test_without_python_frames_the_outcome_is_unknown(rule: Rule) -> None:
    lines = rule.drawings("Fires on")[0].replace("; line = train.py:9 main", "").splitlines()
    [outcome] = rule(sketch("\n".join(line for line in lines if "python" not in line)))
    assert isinstance(outcome, Unknown)
