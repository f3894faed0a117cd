"""Tests the rule `slow_reduction` on edge cases that its documentation page omits."""

import json
from typing import Any

import pytest

from selftime.advice.detectors.reduction_rewrites import (
    code_of,
    recorded_reduction,
    rewrite_of,
)
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge, sketch

DRAWING = """
    column = {column}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | nnnnnnllllnnnnnnllllnnnnnnllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    n = aten::{name}; input_shapes = {shapes}; input_types = ["float"]; concrete_inputs = {values}{more}; line = m.py:8 f
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
"""  # noqa: E501 - what a letter stands for is on one line


def drawing(name: str, shape: list[int], *values: str, column: str = "1 ms", more: str = "") -> str:
    listed = json.dumps(["", *values])
    return DRAWING.format(column=column, name=name, shapes=[shape], values=listed, more=more)


PLANES = drawing("linalg_vector_norm", [2, 65536], "2", "[0]", "False", "")


def test_the_time_of_each_result_and_the_saving_are_told(judge: Judge[Finding]) -> None:
    """6 ms for 65,536 results are 92 ns each; the rewritten code takes some passes instead."""
    [finding] = judge(PLANES)
    assert finding.title == "The norm of 2 elements each takes 92 ns for a result"
    assert finding.where.line == 8
    assert finding.saving.estimate_ms == pytest.approx(6 - 6 * 2 * 65536 * 4 / 4 / 1e6, abs=0.01)
    assert finding.fix.code is not None
    assert finding.fix.code.startswith("(x * x).sum(0).clamp_min(1e-30).sqrt()")


@pytest.mark.parametrize(
    "text",
    [
        drawing("linalg_vector_norm", [65536, 2], "2", "[1]", "False", ""),  # fast in rows
        drawing("linalg_vector_norm", [2, 65536], "3", "[0]", "False", ""),  # no rewrite is known
        drawing("linalg_vector_norm", [2, 65536], "2", "oops", "False", ""),
        drawing("linalg_vector_norm", [2, 65536], "2", "[5]", "False", ""),
        drawing("linalg_vector_norm", [1, 65536], "2", "[0]", "False", ""),
        drawing("linalg_vector_norm", [0, 65536], "2", "[0]", "False", ""),
        drawing("_softmax", [4096, 16], "1", "False"),  # vectorised
        drawing("_softmax", [2, 65536], "0", "False"),
        drawing("sum", [65536, 4], "[1]", "False", ""),
        drawing("sum", [65536, 2], "1", "False", ""),  # a dtype, not a dimension
        PLANES.replace("1 ms", "10 us"),  # as fast as memory
        PLANES.replace("linalg_vector_norm", "cumsum"),
    ],
)
def test_what_is_fast_or_unknown_is_left_alone(judge: Judge[Finding], text: str) -> None:
    assert not judge(text)


def test_strides_say_which_elements_lie_beside_each_other(judge: Judge[Finding]) -> None:
    """The norm along the last dimension of a transposed tensor reads elements that lie apart."""
    apart = "; input_strides = [[1,65536]]"
    [finding] = judge(
        drawing("linalg_vector_norm", [65536, 2], "2", "[-1]", "False", "", more=apart)
    )
    assert finding.fix.code is not None
    assert ".sum(-1)" in finding.fix.code


def test_a_mean_and_the_sum_in_it_count_once(judge: Judge[Finding]) -> None:
    text = drawing("mean", [65536, 2], "[1]", "False", "").replace(
        "    s = ",
        "    cpu 1  | rrrrrr    rrrrrr    rrrrrr\n    s = ",
    )
    inner = 'r = aten::sum; input_shapes = [[65536,2]]; input_types = ["float"]'
    [finding] = judge(text + f'    {inner}; concrete_inputs = ["","[1]","False",""]\n')
    assert finding.count_per_step == 1
    assert finding.title.startswith("The mean")


def test_a_device_reduces_otherwise(rule: Rule) -> None:
    text = PLANES.replace("    s = ", "    call 1 | k\n    gpu 7  | kk\n    s = ", 1)
    assert not any(isinstance(one, Finding) for one in rule(sketch(text)))


def computed(code: str, x: Any) -> Any:
    return eval(code, {"x": x})  # noqa: S307 - the code is the rule's own


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "shape", "values", "call"),
    [
        ("linalg_vector_norm", [2, 5], ["2", "[0]"], "x.norm(dim=0)"),
        ("linalg_vector_norm", [5, 4], ["1", "[-1]"], "x.norm(p=1, dim=-1)"),
        ("linalg_vector_norm", [5, 4], ["inf", "[1]"], "x.norm(p=float('inf'), dim=-1)"),
        ("linalg_vector_norm", [3, 5, 4], ["2", "[0, 1]"], "x.norm(dim=(0, 1))"),
        ("var", [5, 4], ["[1]", "1"], "x.var(-1)"),
        ("var", [5, 4], ["[1]", "0"], "x.var(-1, unbiased=False)"),
        ("std", [5, 4], ["[0]", ""], "x.std(0)"),
        ("_softmax", [5, 4], ["1"], "x.softmax(-1)"),
        ("_log_softmax", [5, 4], ["-1"], "x.log_softmax(-1)"),
        ("sum", [5, 3], ["[1]"], "x.sum(-1)"),
        ("mean", [5, 3], ["[1]"], "x.mean(-1)"),
    ],
)
def test_the_rewritten_code_computes_the_same(
    name: str, shape: list[int], values: list[str], call: str
) -> None:
    torch = pytest.importorskip("torch")
    texts = (json.dumps([shape]), '["float"]', None, json.dumps(["", *values]))
    reduction = recorded_reduction(f"aten::{name}", *texts)
    assert reduction is not None
    rewrite = rewrite_of(reduction)
    assert rewrite is not None
    x = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(computed(code_of(rewrite, reduction), x), computed(call, x))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["linalg_vector_norm", "std"])
def test_gradients_are_zero_where_all_elements_are_alike(name: str) -> None:
    """As they are of `norm` and `std`: a plain root's would be NaN."""
    torch = pytest.importorskip("torch")
    values = ["2", "[0]"] if name == "linalg_vector_norm" else ["[0]", "1"]
    reduction = recorded_reduction(
        f"aten::{name}", "[[2,3]]", None, None, json.dumps(["", *values])
    )
    rewrite = None if reduction is None else rewrite_of(reduction)
    assert reduction is not None
    assert rewrite is not None
    x = torch.zeros(2, 3, requires_grad=True)
    computed(code_of(rewrite, reduction), x).sum().backward()
    assert x.grad.eq(0).all()
