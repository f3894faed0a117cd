"""Tests the rule `nearly_full_memory` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch


def test_the_finding_names_the_line_with_most_memory_at_the_peak(
    rule: Rule, judge: Judge[Finding]
) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.where.line == 30
    assert finding.saving.method == "none"
    assert finding.semantics == "training"


def test_the_check_of_a_device_with_free_memory_names_the_largest_line(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[2]))
    assert isinstance(outcome, Checked)
    assert "9.5 % of device 0" in outcome.reason
    assert "`aten::mm` at `model.py:30 in forward`" in outcome.reason


def test_a_device_of_unknown_size_is_unknown(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[0]
    bare = "\n".join(line for line in drawing.splitlines() if not line.startswith("device"))
    [outcome] = rule(sketch(bare))
    assert isinstance(outcome, Unknown)


def test_a_server_full_of_its_cache_is_told_nothing_to_recompute(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[1]))
    assert isinstance(outcome, Checked)
    assert "no backward pass runs" in outcome.reason
