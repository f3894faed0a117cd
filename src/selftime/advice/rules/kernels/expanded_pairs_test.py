"""Tests the rule `expanded_pairs` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

PAIRS = "[256,256,128]"


def drawing(*, made: str, then: str, after: str = "relu; input_shapes = [[256,256]]") -> str:
    return f"""
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | lxxxxpppur lxxxxpppur
    s = ProfilerStep#1
    t = ProfilerStep#2
    l = aten::linear; input_shapes = [[256,128],[128,128]]; input_types = ["float","float"]
    x = aten::{made}; line = net.py:8 loss
    p = aten::{then}
    u = aten::{after}
    r = aten::relu; input_shapes = [[256,128]]
    """.replace("pppur lxx", "pppurlxx")


SUB = 'sub; input_shapes = [[256,1,128],[1,256,128],[]]; input_types = ["float","float","Scalar"]'
MUL = 'mul; input_shapes = [[256,1,128],[1,256,128]]; input_types = ["float","float"]'
SUM = f'sum; input_shapes = [{PAIRS},[],[],[]]; concrete_inputs = ["","[2]","False",""]'
SUM_OF_FIRST = SUM.replace("[2]", "[0]")


@pytest.mark.parametrize(
    ("made", "title"),
    [(SUB, "Differences of all pairs"), (MUL, "Products of all pairs")],
)
def test_the_kind_is_told(judge: Judge[Finding], made: str, title: str) -> None:
    [finding] = judge(drawing(made=made, then=SUM))
    assert finding.title.startswith(title)
    assert finding.where.line == 8
    assert finding.count_per_step == 1


def test_a_sum_over_the_pairs_is_no_comparison(judge: Judge[Finding]) -> None:
    assert not judge(drawing(made=SUB, then=SUM_OF_FIRST))


def test_pairs_that_another_operator_takes_are_needed(judge: Judge[Finding]) -> None:
    used = f"div; input_shapes = [{PAIRS},[256,256,1]]"
    assert not judge(drawing(made=SUB, then=SUM, after=used))
    assert not judge(drawing(made=SUB, then=f"tanh; input_shapes = [{PAIRS}]", after=SUM))


def test_one_tensor_of_full_size_is_no_comparison_of_rows(judge: Judge[Finding]) -> None:
    full = f'mul; input_shapes = [[256,256,1],{PAIRS}]; input_types = ["float","float"]'
    assert not judge(drawing(made=full, then=SUM))


def test_cosines_of_repeated_rows_are_found(judge: Judge[Finding]) -> None:
    made = (
        "cosine_similarity; input_shapes = [[256,1,128],[1,256,128],[],[]]; "
        'concrete_inputs = ["","","-1","1e-08"]'
    )
    [finding] = judge(drawing(made=made, then="relu; input_shapes = [[256,256]]"))
    assert finding.title.startswith("Rows of all pairs")
