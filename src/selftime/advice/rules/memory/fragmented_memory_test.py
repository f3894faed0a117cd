"""Tests the rule `fragmented_memory` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch


def test_fragmentation_is_reported_without_a_count_of_failures(
    rule: Rule, judge: Judge[Finding]
) -> None:
    [finding] = judge(rule.drawings("Fires on")[1])
    assert finding.saving.method == "none"
    assert finding.confidence == "medium"
    assert all(evidence.value is not None for evidence in finding.evidence)


def test_without_allocator_totals_the_outcome_is_unknown(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[0]
    bare = "\n".join(line for line in drawing.splitlines() if "facts" not in line)
    [outcome] = rule(sketch(bare))
    assert isinstance(outcome, Unknown)


def test_a_device_of_unknown_size_is_not_reported(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[1]
    unknown = "\n".join(line for line in drawing.splitlines() if "device" not in line[:9])
    [outcome] = rule(sketch(unknown))
    assert isinstance(outcome, Checked)
