"""Tests the rule `dense_embedding_gradient` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge, sketch

DRAWING = """
    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | {one}{one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    m = aten::mm; input_shapes = [[64,64],[64,64]]
    b = aten::embedding_dense_backward; input_shapes = {shapes}; concrete_inputs = {values}; line = w.py:3 f
"""  # noqa: E501 - what a letter stands for is on one line


def drawing(
    one: str = "mmmmmmbbbb",
    shapes: str = "[[512,64],[512]]",
    values: str = '["","","65536","-1","False"]',
) -> str:
    return DRAWING.format(one=one, shapes=shapes, values=values)


def test_rows_that_were_looked_up_stay(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing())
    keep = 3 * 512 / (65536 + 2 * 512)
    assert finding.saving.estimate_ms == pytest.approx(4 * (1 - keep), rel=0.01)
    assert finding.saving.upper_ms == pytest.approx(4.0)
    assert finding.where.line == 3


def test_a_twentieth_is_not_worth_another_optimizer(judge: Judge[Finding]) -> None:
    text = drawing("mmmmmmmmmb").replace("mmmmmmmmmb", "mmmmmmmmmm" * 2 + "b")
    text = text.replace("ssssssssss", "s" * 21).replace("tttttttttt", "t" * 21)
    assert not judge(text.replace("uuuuuuuuuu", "u" * 21))


@pytest.mark.parametrize("values", ['["","","2047"]', '["",""]', "oops", '{"a": 1}', '["","",[]]'])
def test_few_or_unknown_rows_are_none_of_it(judge: Judge[Finding], values: str) -> None:
    assert not judge(drawing(values=values))


def test_shapes_that_are_none(rule: Rule) -> None:
    assert rule(sketch(drawing(shapes="oops")))
