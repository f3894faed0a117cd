"""Tests the rule `single_precision` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge, sketch


def found(rule: Rule, drawing: str, major: int) -> list[Finding]:
    trace = sketch(drawing, devices=[{"name": "some GPU", "compute_major": major}])
    return [outcome for outcome in rule(trace) if isinstance(outcome, Finding)]


def test_a_device_without_tensor_cores_has_none_to_use(rule: Rule) -> None:
    assert not found(rule, rule.drawings("Fires on")[0], 6)


def test_before_ampere_there_is_no_tf32(rule: Rule) -> None:
    [volta] = found(rule, rule.drawings("Fires on")[0], 7)
    [ampere] = found(rule, rule.drawings("Fires on")[0], 8)
    assert volta.covers == ("E1",)
    assert "float16" in (volta.fix.code or "")
    assert ampere.covers == ("E1", "E2")
    assert (volta.saving.estimate_ms or 0) < (ampere.saving.estimate_ms or 0)


def test_half_of_the_products_is_saved_where_the_device_sets_the_pace(
    rule: Rule, judge: Judge[Finding]
) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.saving.estimate_ms == pytest.approx(3.5)
    assert finding.semantics == "numerics"


@pytest.mark.parametrize(
    "types",
    ['["double","double"]', '["c10::BFloat16","c10::BFloat16"]', '["",""]', "oops", '{"a":1}'],
)
def test_only_float32_is_asked_about(judge: Judge[Finding], rule: Rule, types: str) -> None:
    drawing = rule.drawings("Fires on")[0].replace('["float","float"]', types)
    assert not judge(drawing)


HEAD = """
    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | abccabccabcc
    call 1 | kl  kl  kl
    gpu 7  | kkkkkllkkkkkllkkkkkll
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["{kind}","{kind}"]; input_shapes = [[64,64],[64,64]]
    b = aten::mm; input_types = ["float","float"]; input_shapes = [[9,9],[9,9]]; line = net.py:9 f
    k = ampere_bf16_s16816gemm_bf16_128x64_nn
    l = ampere_sgemm_128x64_nn
    c = {beside}
"""
BACKWARD = "autograd::engine::evaluate_function: MmBackward0"


def test_a_head_may_be_left_in_float32(judge: Judge[Finding]) -> None:
    [finding] = judge(HEAD.format(kind="c10::BFloat16", beside="aten::relu"))
    assert finding.covers == ("E1", "E2", "K8")
    assert finding.where.line == 9
    assert "head" in finding.fix.text
    training = HEAD.format(kind="c10::BFloat16", beside=BACKWARD)
    assert [found.covers for found in judge(training)] == [("E1", "E2")]
