"""Edges of `eager_decoding` that its page does not draw."""

from selftime.advice.base import Finding
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


def drawing(operators: int, *, rows: int = 1, attention: str = "_softmax", more: str = "") -> str:
    work = "al" * (operators // 2) + more
    return DRAWING.format(step="s" * len(work), work=work, rows=rows, attention=attention)


def test_a_token_takes_hundreds_of_operators(judge: Judge[Finding]) -> None:
    assert not judge(drawing(198))
    [finding] = judge(drawing(200))
    assert finding.covers == ("K1",)
    assert finding.count_per_step == 200


def test_a_few_sequences_are_still_decoding(judge: Judge[Finding]) -> None:
    assert judge(drawing(240, rows=8))
    assert not judge(drawing(240, rows=64))


def test_training_is_no_decoding(judge: Judge[Finding]) -> None:
    assert not judge(drawing(240, more="b"))


def test_shapes_that_nobody_can_read_say_nothing(judge: Judge[Finding]) -> None:
    assert not judge(drawing(240).replace("[[64],[1,64],[64,64],[],[]]", "oops"))
