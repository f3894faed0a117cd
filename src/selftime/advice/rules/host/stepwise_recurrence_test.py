"""Tests the rule `stepwise_recurrence` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding, Rule, Unknown
from selftime.testing import Judge, sketch

DRAWING = """
    column = 20 us
    mark 1 | {step}
    cpu 1  | {calls}
    s = ProfilerStep#1
    c = aten::{operator}; input_shapes = {shapes}; concrete_inputs = {values}; line = net.py:8 run
    p = aten::mm; input_shapes = [[32,64],[64,64]]; line = net.py:9 run
    b = autograd::engine::evaluate_function: AddBackward0
"""


def drawing(
    calls: str,
    *,
    operator: str = "gru_cell",
    shapes: str = "[[32,64]]",
    values: str = '["","False"]',
) -> str:
    """Draws a step that calls a recurrent layer or cell, and trains it."""
    row = calls.ljust(40) + "bbbb"
    return DRAWING.format(
        step="s" * len(row), calls=row, operator=operator, shapes=shapes, values=values
    )


def test_eight_calls_are_a_sequence(judge: Judge[Finding]) -> None:
    assert not judge(drawing("c " * 7))
    [finding] = judge(drawing("c " * 8))
    assert (finding.where.line, finding.count_per_step) == (8, 8)


@pytest.mark.parametrize(
    ("shapes", "values", "found"),
    [
        ("[[1,32,64]]", '["","False"]', True),
        ("[[32,1,64]]", '["","False"]', False),
        ("[[32,1,64]]", '["","True"]', True),
        ("[[1,32,64]]", '["","True"]', False),
        ("[[32,64]]", '["","False"]', False),
    ],
)
def test_a_layer_gets_one_element_by_its_dimension_of_time(
    shapes: str, values: str, found: bool, judge: Judge[Finding]
) -> None:
    drawn = drawing("c " * 10, operator="lstm", shapes=shapes, values=values)
    assert len(judge(drawn)) == found


def test_layers_without_shapes_are_unknown(rule: Rule) -> None:
    drawn = drawing("c " * 10, operator="gru").replace("input_shapes = [[32,64]]; ", "")
    drawn = drawn.replace("input_shapes = [[32,64],[64,64]]; ", "")
    [told] = rule(sketch(drawn))
    assert isinstance(told, Unknown)


def test_a_product_between_the_calls_may_make_the_next_input(judge: Judge[Finding]) -> None:
    [alone] = judge(drawing("c " * 10 + "p"))
    [among] = judge(drawing("cp" * 10))
    assert (alone.confidence, among.confidence) == ("medium", "low")
