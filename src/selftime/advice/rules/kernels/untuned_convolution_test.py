"""Tests the rule `untuned_convolution` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import sketch

DRAWING = """
    column = 1 ms
    {facts}
    mark 1 | ssssttttuuuu
    cpu 1  | ccmmccmmccmm
    call 1 | k m k m k m
    gpu 7  |  {one}{one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::convolution; input_shapes = [[8,64,32,32],[64,64,3,3],[]]; line = n.py:7 f
    m = aten::mm; input_shapes = [[64,64],[64,64]]
    k = conv_kernel
"""

OFF = 'facts = {"settings": {"cudnn_benchmark": false}}'


def drawing(facts: str = OFF, one: str = "kkmm") -> str:
    return DRAWING.replace("{facts}", facts).replace("{one}", one)


def test_it_promises_nothing(rule: Rule) -> None:
    [finding] = rule(sketch(drawing()))
    assert isinstance(finding, Finding)
    assert finding.saving.estimate_ms is None
    assert finding.where.line == 7


def test_without_the_setting_it_is_unknown(rule: Rule) -> None:
    for facts in ("", 'facts = {"settings": 3}', 'facts = {"settings": {}}'):
        [outcome] = rule(sketch(drawing(facts)))
        assert isinstance(outcome, Unknown)


def test_few_convolutions_are_not_worth_it(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing(one="kmmm")))
    assert isinstance(outcome, Checked)


def test_other_makers_have_no_cudnn(rule: Rule) -> None:
    text = drawing().replace(OFF, OFF + '\n    device = {"name": "AMD Instinct MI300X"}')
    [outcome] = rule(sketch(text))
    assert isinstance(outcome, Checked)
