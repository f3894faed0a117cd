"""Tests the rule `eager_decoding` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

DRAWING = """
    column = 2 us
    mark 1 | {step}
    cpu 1  | {work}
    s = ProfilerStep#1
    a = aten::{attention}
    l = aten::addmm; input_shapes = [[64],[{rows},64],[64,64],[],[]]
    b = autograd::engine::evaluate_function: AddmmBackward0
"""


def drawing(
    operator_count: int,
    *,
    rows: int = 1,
    attention: str = "scaled_dot_product_attention",
    last_operators: str = "",
) -> str:
    work = "al" * (operator_count // 2) + last_operators
    return DRAWING.format(step="s" * len(work), work=work, rows=rows, attention=attention)


def test_steps_of_fewer_than_200_operators_are_not_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing(198))
    [finding] = judge(drawing(200))
    assert finding.covers == ("K1",)
    assert finding.count_per_step == 200


def test_small_batches_of_sequences_are_still_decoding(judge: Judge[Finding]) -> None:
    assert judge(drawing(240, rows=8))
    assert not judge(drawing(240, rows=64))


def test_training_is_not_reported_as_decoding(judge: Judge[Finding]) -> None:
    assert not judge(drawing(240, last_operators="b"))


def test_unreadable_shapes_give_no_finding(judge: Judge[Finding]) -> None:
    assert not judge(drawing(240).replace("[[64],[1,64],[64,64],[],[]]", "oops"))
