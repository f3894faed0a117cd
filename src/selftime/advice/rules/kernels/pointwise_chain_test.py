"""Tests the rule `pointwise_chain` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import GRADIENTS_OF_GRADIENTS, Judge, sketch

DRAWING = """
    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | {one}{one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mul; input_shapes = [[1024,1024],[]]; input_types = ["{dtype}","Scalar"]; line = w.py:5 f
    b = aten::sin; input_shapes = [[1024,1024]]; input_types = ["{dtype}"]; line = w.py:6 f
    c = aten::add; input_shapes = [[1024,1024],[1024,1024]]; input_types = ["{dtype}","{dtype}"]; line = w.py:7 f
    r = aten::sum; input_shapes = [[1024,1024]]; input_types = ["{dtype}"]; line = w.py:8 f
    i = aten::mul_; input_shapes = [[1024,1024],[]]; input_types = ["{dtype}","Scalar"]
    j = aten::add_; input_shapes = [[1024,1024],[1024,1024]]; input_types = ["{dtype}","{dtype}"]
    o = aten::softmax; input_shapes = [[1024,1024]]; input_types = ["{dtype}"]
    h = aten::tanh; input_shapes = [[512,1024]]; input_types = ["{dtype}"]
    v = aten::view; input_shapes = [[1024,1024],[]]; input_types = ["{dtype}",""]
    m = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
"""  # noqa: E501 - what a letter stands for is on one line


def drawing(one: str, dtype: str = "float") -> str:
    return DRAWING.format(one=one.ljust(10), dtype=dtype)


def test_what_comes_from_outside_is_read_all_the_same(judge: Judge[Finding]) -> None:
    """Of nine tensors read or written, fusion leaves three: two inputs and the result."""
    [finding] = judge(drawing("aabbaaccmm"))
    assert finding.saving.estimate_ms == pytest.approx(8 * 6 / 9, rel=0.01)
    assert finding.saving.upper_ms == pytest.approx(8.0)
    assert finding.where.line == 5


def test_functions_of_one_name_in_a_file_are_two(judge: Judge[Finding]) -> None:
    """As `forward` of two modules: each is compiled by itself."""
    one = """
        mark 1   | {steps}
        python 1 | {frames}
        cpu 1    | {chains}
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        f = w.py(3): forward
        g = w.py(20): forward
        a = aten::mul; input_shapes = [[1024,1024],[]]; input_types = ["float","Scalar"]; line = w.py:5 forward
        b = aten::sin; input_shapes = [[1024,1024]]; input_types = ["float"]; line = w.py:6 forward
        c = aten::add; input_shapes = [[1024,1024],[]]; input_types = ["float","Scalar"]; line = w.py:6 forward
        d = aten::mul; input_shapes = [[1024,1024],[]]; input_types = ["float","Scalar"]; line = w.py:22 forward
        e = aten::sin; input_shapes = [[1024,1024]]; input_types = ["float"]; line = w.py:23 forward
        h = aten::add; input_shapes = [[1024,1024],[]]; input_types = ["float","Scalar"]; line = w.py:24 forward
        m = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
    """  # noqa: E501 - what a letter stands for is on one line
    steps = "".join(letter * 17 for letter in "stu")
    text = one.format(steps=steps, frames="fffff ggggggggggg" * 3, chains="abcam dddeeehhddm" * 3)
    found = judge("    column = 1 ms\n" + text.replace("        ", "    "))
    assert {finding.where.line for finding in found} == {5, 22}


@pytest.mark.parametrize(
    "one", ["abmcmabmmm", "bcmmmmmmma", "abhcmmmmmm", "ijijijijij", "aboabommmm", "arbrcrarbm"]
)
def test_what_is_no_chain(judge: Judge[Finding], one: str) -> None:
    assert not judge(drawing(one))


def test_what_runs_in_compiled_code_is_not_to_be_compiled(judge: Judge[Finding]) -> None:
    region = f"    cpu 1  | {'zzzzzzzzzz' * 3}\n    z = Torch-Compiled Region: 0/0\n"
    text = drawing("aabbaaccmm")
    assert judge(text)
    assert not judge(text.replace("    cpu 1", region + "    cpu 1", 1))


def test_three_passes_are_in_every_residual_network(judge: Judge[Finding]) -> None:
    assert not judge(drawing("aabbccmmmm"))


def test_a_view_between_them_is_nothing(judge: Judge[Finding]) -> None:
    assert judge(drawing("aavbbaaccm"))


def test_double_precision_is_another_cause(judge: Judge[Finding]) -> None:
    assert not judge(drawing("aabbaaccmm", "double"))


def test_small_tensors_stay_in_a_cache(judge: Judge[Finding]) -> None:
    assert not judge(drawing("aabbaaccmm").replace("1024,1024", "16,1024"))


def test_what_autograd_and_optimizers_do_is_not_the_programs(judge: Judge[Finding]) -> None:
    text = drawing("aabbaaccmm").replace(
        "    cpu 1  |", "    mark 1 | oooooooooooooooooooooooooooooo\n    cpu 1  |", 1
    )
    assert not judge(text.replace("o = aten::softmax", "o = Optimizer.step#Mine.step"))


def test_nothing_is_compiled_where_gradients_of_gradients_are_taken(
    rule: Rule, judge: Judge[Finding]
) -> None:
    text = drawing("aabbaaccmm")
    assert judge(text)
    [outcome] = rule(sketch(text + GRADIENTS_OF_GRADIENTS))
    assert isinstance(outcome, Checked)
    assert "does not support the gradients of gradients" in outcome.reason
