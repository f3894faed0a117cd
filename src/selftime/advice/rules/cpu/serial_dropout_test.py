"""Tests the rule `serial_dropout` on edge cases that its documentation page omits."""

from typing import Any

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

DRAWING = """
    column = 1 ms
    mark 1 | {steps}
    cpu 1  | {one}{one}{one}
    cpu 1  | {mask}{mask}{mask}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = aten::dropout; line = net.py:8 forward
    e = aten::dropout; line = net.py:9 forward
    r = autograd::engine::evaluate_function: CheckpointFunctionBackward
    b = aten::{name}; input_shapes = [{shape}]; input_types = ["float"]; line = net.py:8 forward
    c = aten::{name}; input_shapes = [{shape}]; input_types = ["float"]; line = net.py:9 forward
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
"""


def drawing(
    one: str = "ddddddllll",
    mask: str = "bbbbbb    ",
    name: str = "bernoulli_",
    shape: str = "[1000,1000]",
) -> str:
    steps = "".join(letter * len(one) for letter in "stu")
    return DRAWING.format(steps=steps, one=one, mask=mask, name=name, shape=shape)


def test_the_share_and_the_time_of_a_number_are_told(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing())
    assert finding.title == "60 % of the step draws masks of dropout, 6 ns a number"
    assert finding.where.line == 8
    assert finding.saving.estimate_ms == pytest.approx(4)
    assert finding.semantics == "training"


def test_a_starved_processor_makes_no_larger_promise(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(shape="[100,1000]"))
    assert "60 ns a number" in finding.title
    assert finding.saving.estimate_ms == pytest.approx(6 * 0.82)


def test_each_line_that_draws_much_has_a_finding(judge: Judge[Finding]) -> None:
    found = judge(drawing("ddddddeeel", "bbbbbbccc ", shape="[500,1000]"))
    assert [finding.where.line for finding in found] == [8, 9]
    found = judge(drawing("d" * 10 + "e" + "l" * 4, "b" * 10 + "c" + " " * 4))
    assert [finding.where.line for finding in found] == [8]


@pytest.mark.parametrize(
    "text",
    [
        drawing("ddddddllll", "bb        "),  # 2 ns a number
        drawing("d" + "l" * 14, "b" + " " * 14, shape="[100,1000]"),  # little of the step
        drawing(name="normal_"),
        drawing(shape="[]"),
        drawing("rrrrrrllll"),  # recomputed in the backward pass
    ],
)
def test_fast_few_and_unknown_numbers_are_left_alone(judge: Judge[Finding], text: str) -> None:
    assert not judge(text)


def test_dropout_within_attention_is_no_call_of_the_program(judge: Judge[Finding]) -> None:
    text = drawing()
    around = "    cpu 1  | pppppp    pppppp    pppppp\n    cpu 1  | dddddd"
    within = text.replace("    cpu 1  | dddddd", around, 1).replace("llll", "    ")
    assert judge(text.replace("llll", "    "))
    assert not judge(f"{within}    p = aten::scaled_dot_product_attention\n")


def test_a_fast_generator_is_said_to_be_checked(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing("ddllllllll", "bb        ")))
    assert isinstance(outcome, Checked)
    assert "2 ns a number" in outcome.reason


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_dropout_of_the_fix_drops_what_it_says_and_keeps_the_mean(
    judge: Judge[Finding], dtype: str
) -> None:
    [finding] = judge(drawing())
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Dropout(0.25), torch.nn.Dropout1d(0.25))
    named: dict[str, Any] = {"torch": torch, "nn": torch.nn, "model": model}
    exec(finding.fix.code or "", named)  # noqa: S102 - the code is the rule's own
    layer = model[0]
    assert isinstance(layer, named["ByteDropout"])
    assert isinstance(model[1], torch.nn.Dropout1d)
    torch.manual_seed(0)
    x = torch.ones(1000, 1001, dtype=getattr(torch, dtype), requires_grad=True)
    y = layer(x)
    assert y.dtype == x.dtype
    assert y.eq(0).float().mean().item() == pytest.approx(0.25, abs=0.003)
    assert y.float().mean().item() == pytest.approx(1, abs=0.01)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())
    assert layer.eval()(x) is x
