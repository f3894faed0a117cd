"""Edges of `optimizer_temporaries` that its page does not draw."""

import pytest

from selftime.advice.base import Checked, Finding, Rule
from selftime.testing import Judge, sketch


def test_the_line_and_the_share(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    told = {evidence.metric: evidence.value for evidence in finding.evidence}
    assert finding.where.line == 20
    assert told["of the peak"] == pytest.approx(3500 / 15500)


def test_a_device_with_room_is_told_with_its_figure(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[0]))
    assert isinstance(outcome, Checked)
    assert "3.42 KiB" in outcome.reason


def test_temporaries_elsewhere_are_not_the_optimizers(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    assert not judge(drawing.replace("Optimizer.step#AdamW.step", "evaluate"))
