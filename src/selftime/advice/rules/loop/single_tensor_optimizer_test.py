"""Edges of `single_tensor_optimizer` that its page does not draw."""

from selftime.advice.base import Finding
from selftime.testing import Judge

DRAWING = """
    column = 20 us
    mark 1 | {s}{t}
    mark 1 | {o}{p}
    cpu 1  | {m}{m}
    s = ProfilerStep#1
    t = ProfilerStep#2
    o = Optimizer.step#{optimizer}.step; line = train.py:48 train
    p = Optimizer.step#{optimizer}.step; line = train.py:48 train
    m = aten::mul_
    a = {operator}
"""


def drawing(parameters: int, *, optimizer: str = "SGD", operator: str = "aten::add_") -> str:
    """Two steps, each with an optimizer that runs two operators a parameter."""
    width = 2 * parameters + 4
    return DRAWING.format(
        s="s" * width,
        t="t" * width,
        o="o" * width,
        p="p" * width,
        m=("ma" * parameters).ljust(width),
        optimizer=optimizer,
        operator=operator,
    )


def test_a_few_parameters_are_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(drawing(7))
    assert judge(drawing(8))


def test_the_fix_is_one_that_the_optimizer_has(judge: Judge[Finding]) -> None:
    [fused] = judge(drawing(20, optimizer="AdamW"))
    [looped] = judge(drawing(20, optimizer="RMSprop"))
    assert fused.fix.code == "torch.optim.AdamW(..., fused=True)"
    assert looped.fix.code == "torch.optim.RMSprop(..., foreach=True)"
    assert fused.where.line == 48


def test_foreach_operators_are_no_loop(judge: Judge[Finding]) -> None:
    assert not judge(drawing(20, operator="aten::_foreach_add_"))
