"""Tests the rule `optimizer_temporaries` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch


def test_the_finding_names_the_line_and_the_share(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    told = {evidence.metric: evidence.value for evidence in finding.evidence}
    assert finding.where.line == 20
    assert told["share of the peak memory"] == pytest.approx(3500 / 15500)


def test_the_check_of_a_device_with_free_memory_names_the_bytes(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[0]))
    assert isinstance(outcome, Checked)
    assert "3.42 KiB" in outcome.reason


def test_temporaries_outside_the_optimizer_are_not_reported(
    rule: Rule, judge: Judge[Finding]
) -> None:
    drawing = rule.drawings("Fires on")[0]
    assert not judge(drawing.replace("Optimizer.step#AdamW.step", "evaluate"))


def test_the_fix_is_a_form_that_the_optimizer_supports(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    fixes = {}
    for optimizer in ("AdamW", "RMSprop", "Adagrad", "Lion"):
        [finding] = judge(drawing.replace("AdamW", optimizer))
        fixes[optimizer] = finding.fix.code
    assert fixes == {
        "AdamW": "optimizer = torch.optim.AdamW(model.parameters(), fused=True)",
        "RMSprop": "optimizer = torch.optim.RMSprop(model.parameters(), foreach=False)",
        "Adagrad": "optimizer = torch.optim.Adagrad(model.parameters(), foreach=False)",
        "Lion": None,
    }


def test_sparse_gradients_get_no_fused_optimizer(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0].replace("AdamW", "SGD").replace("  ffff", "  fffc")
    [finding] = judge(drawing.replace("ffff", "fffc") + "\nc = aten::_coalesce")
    assert finding.fix.code is not None
    assert '{"params": sparse}' in finding.fix.code
