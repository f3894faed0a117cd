"""Tests the rule `unaligned_matrix` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.replay import ScaleDeviceWork
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge


def test_aligned_products_of_the_trace_set_the_pace(rule: Rule, judge: Judge[Finding]) -> None:
    """An aligned product takes 1 ms, an unaligned one with as many operations 7 ms.

    Of 8 ms a step 2 would be left, but the host needs 4.
    """
    drawing = rule.drawings("Fires on")[0].replace("k  bk  bk  b", "k  jk  jk  j")
    drawing = drawing.replace("kkkkkkkb" * 3, "kkkkkkkj" * 3)
    [finding] = judge(drawing + "\nj = nvjet_tst_128x64")
    [change] = finding.changes
    assert isinstance(change, ScaleDeviceWork)
    assert change.kept_share == pytest.approx(1 / 7, abs=0.005)
    assert finding.saving.estimate_ms == pytest.approx(4.0)


def test_without_a_measure_a_quarter_is_kept(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0].replace("b = aten::mm", "b = aten::relu")
    [finding] = judge(drawing)
    [change] = finding.changes
    assert isinstance(change, ScaleDeviceWork)
    assert change.kept_share == 0.25


@pytest.mark.parametrize("types", ['["float","float"]', "oops", '{"a":1}', '["",""]'])
def test_only_half_precision_is_asked_about(rule: Rule, judge: Judge[Finding], types: str) -> None:
    drawing = rule.drawings("Fires on")[0]
    assert not judge(drawing.replace('["c10::BFloat16","c10::BFloat16"]', types))
