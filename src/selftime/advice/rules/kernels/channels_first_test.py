"""Tests the rule `channels_first` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch

DRAWING = """
    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | {one}{one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = aten::convolution; input_shapes = [{image},[64,1,3,3]]; input_types = {types}; input_strides = {steps}; line = n.py:3 f
    c = aten::convolution; input_shapes = [{image},[64,64,3,3]]; input_types = {types}; input_strides = {steps}; line = n.py:4 f
    p = aten::convolution; input_shapes = [{image},[64,64,1,1]]; input_types = {types}; input_strides = {steps}; line = n.py:5 f
    g = aten::convolution; input_shapes = [{image},[64,8,3,3]]; input_types = {types}; input_strides = {steps}; line = n.py:6 f
    a = aten::mm; input_shapes = [[64,64],[64,64]]
"""  # noqa: E501 - what a letter stands for is on one line

FIRST = "[[65536,1024,32,1],[9,9,3,1]]"


def drawing(
    one: str,
    image: str = "[8,64,32,32]",
    steps: str = FIRST,
    types: str = '["float","float"]',
) -> str:
    return DRAWING.format(one=one.ljust(10), image=image, steps=steps, types=types)


def test_the_gain_is_as_measured(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("ddddddddaa"))
    assert finding.saving.estimate_ms == pytest.approx(8 * 0.6, rel=0.01)
    assert finding.where.line == 3
    assert finding.confidence == "medium"


def test_what_loses_is_set_against_what_gains(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("dddddpaaaa"))
    assert finding.saving.estimate_ms == pytest.approx(5 * 0.6 - 0.4, rel=0.01)
    assert not judge(drawing("dddppppaaa"))


def test_dense_filters_gain_a_little_and_not_surely(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ccccccccca"))
    [finding] = judge(drawing("dddddcccaa"))
    assert finding.saving.estimate_ms == pytest.approx(5 * 0.6 + 3 * 0.17, rel=0.01)


def test_a_gain_that_depends_on_the_cpu_is_unknown(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing("ccccccccca")))
    assert isinstance(outcome, Unknown)
    assert "90.0 % of the step" in outcome.needs


def test_a_few_convolutions_gain_little(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing("caaaaaaaaa")))
    assert isinstance(outcome, Checked)


@pytest.mark.parametrize(
    ("image", "steps", "types"),
    [
        ("[8,4,32,32]", "[[4096,1024,32,1],[9,9,3,1]]", '["float","float"]'),
        ("[8,64,32,32]", "[[65536,1,2048,64],[9,9,3,1]]", '["float","float"]'),
        ("[8,64,32,32]", FIRST, '["double","double"]'),
        ("[8,64,1,1]", "[[64,1,1,1],[9,9,3,1]]", '["float","float"]'),
        ("[8,64,32]", "[[2048,32,1],[9,9,3,1]]", '["float","float"]'),
        ("[8,64,32,32]", "oops", "oops"),
    ],
)
def test_others_are_none_of_it(judge: Judge[Finding], image: str, steps: str, types: str) -> None:
    assert not judge(drawing("ddddddddaa", image, steps, types))


def test_groups_are_not_measured(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ggggggggaa"))


def test_a_gpu_that_turns_nothing_around_has_none(rule: Rule) -> None:
    [outcome] = rule(
        sketch("""
        column = 1 ms
        mark 1 | sssssttttt
        cpu 1  | d    d
        call 1 | k    k
        gpu 7  |  kkkk kkkk
        s = ProfilerStep#1
        t = ProfilerStep#2
        d = aten::convolution; input_shapes = [[8,64,32,32],[64,64,3,3]]; input_types = ["float","float"]; input_strides = [[65536,1024,32,1],[9,9,3,1]]
        k = ampere_scudnn_128x64_relu_small_nn_v1
    """)  # noqa: E501 - what a letter stands for is on one line
    )
    assert isinstance(outcome, Checked)
