"""Tests the rule `allocation_churn` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch


def without_facts(drawing: str) -> str:
    return "\n".join(line for line in drawing.splitlines() if "facts" not in line)


def test_the_saving_is_the_time_in_the_system(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.where.line == 12
    assert finding.saving.estimate_ms == pytest.approx(5)
    assert finding.saving.upper_ms == pytest.approx(8)
    assert finding.count_per_step == 1


def test_threads_share_the_time_of_the_system(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0].replace('{"allocator"', '{"threads": 4, "allocator"')
    [finding] = judge(drawing)
    assert finding.saving.estimate_ms == pytest.approx(5 * (1 + 1 / 4) / 2)


def test_pages_that_only_recorded_steps_take_are_the_recorder_s(
    rule: Rule, judge: Judge[Finding]
) -> None:
    told = '{"steps": {"unprofiled_page_faults": %s}, "allocator"'
    drawing = rule.drawings("Fires on")[0]
    [finding] = judge(drawing.replace('{"allocator"', told % "[10000, 10000, 10000]"))
    assert finding.saving.estimate_ms == pytest.approx(5)
    assert not judge(drawing.replace('{"allocator"', told % "[4, 0, 10000]"))


def test_without_counts_nobody_can_tell(rule: Rule) -> None:
    drawing = without_facts(rule.drawings("Fires on")[0])
    [outcome] = rule(sketch(drawing))
    assert isinstance(outcome, Unknown)
    [outcome] = rule(sketch(drawing.replace("40960000", "131072")))
    assert isinstance(outcome, Checked)


def test_counts_that_are_null_are_none(rule: Rule) -> None:
    told = '{"allocator": {"page_faults": null, "page_size": null, "system_ns": null}}'
    drawing = without_facts(rule.drawings("Fires on")[0])
    [outcome] = rule(sketch(f"{drawing}\nfacts = {told}"))
    assert isinstance(outcome, Unknown)


def test_one_that_only_allocates_stands_for_its_caller(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    drawing = drawing.replace("memory 1 |", "cpu 1    |  eee       eee\nmemory 1 |")
    [finding] = judge(f"{drawing}\ne = aten::empty")
    assert finding.saving.upper_ms == pytest.approx(8)


def test_a_function_is_one_finding_at_its_line(judge: Judge[Finding]) -> None:
    [finding] = judge("""
        column = 1 ms
        mark 1   | sssssssssstttttttttt
        cpu 1    |  mmmmmnnn  mmmmmnnn
        memory 1 |  B    C bc B    C bc
        s = ProfilerStep#1
        t = ProfilerStep#2
        m = aten::mul; line = train.py:11 step definition
        n = aten::clamp; line = train.py:12 step
        B = block; bytes = 40960000
        C = block; bytes = 20480000
        facts = {"allocator": {"page_faults": 30000, "page_size": 4096, "system_ns": 10000000}}
    """)
    assert finding.where.line == 12
    assert finding.saving.upper_ms == pytest.approx(8)
