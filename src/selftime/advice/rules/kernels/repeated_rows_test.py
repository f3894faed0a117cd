"""Tests the rule `repeated_rows` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

OPERATORS = """
    u = aten::relu; input_shapes = [[1,32,128]]; input_types = ["float"]; input_strides = [[4096,128,1]]
    r = aten::repeat; input_shapes = [[1,32,128],[]]; input_types = ["float","ScalarList"]; input_strides = [[4096,128,1],[]]; concrete_inputs = ["","[64, 1, 1]"]
    e = aten::expand; input_shapes = [[1,32,128],[],[]]; input_types = ["float","ScalarList","Scalar"]; input_strides = [[4096,128,1],[],[]]; concrete_inputs = ["","[64, -1, -1]","False"]
    w = aten::repeat; input_shapes = [[64,32,2],[]]; input_types = ["float","ScalarList"]; input_strides = [[64,2,1],[]]; concrete_inputs = ["","[1, 1, 64]"]
    p = aten::transpose; input_shapes = [[64,32,128],[],[]]; input_types = ["float","Scalar","Scalar"]; input_strides = [[4096,128,1],[],[]]; concrete_inputs = ["","0","1"]
    q = aten::tanh; input_shapes = [[64,32,128]]; input_types = ["float"]; input_strides = [[4096,128,1]]
    k = aten::unsqueeze; input_shapes = [[64,32,128],[]]; input_types = ["float","Scalar"]; input_strides = [[4096,128,1],[]]; concrete_inputs = ["","1"]
    c = aten::cat; input_shapes = [[[64,32,128],[64,32,128]],[]]; input_types = ["TensorList","Scalar"]; input_strides = [[[4096,128,1],[4096,128,1]],[]]; concrete_inputs = ["","2"]
    C = aten::cat; input_shapes = [[[64,32,128],[64,32,128]],[]]; input_types = ["TensorList","Scalar"]; input_strides = [[[0,128,1],[4096,128,1]],[]]; concrete_inputs = ["","2"]
    t = aten::cat; input_shapes = [[[32,64,128],[32,64,128]],[]]; input_types = ["TensorList","Scalar"]; input_strides = [[[128,4096,1],[128,4096,1]],[]]; concrete_inputs = ["","2"]
    s = aten::cat; input_shapes = [[[64,32,128],[64,32,128]],[]]; input_types = ["TensorList","Scalar"]; input_strides = [[[4096,128,1],[4096,128,1]],[]]; concrete_inputs = ["","0"]
    v = aten::view; input_shapes = [[64,32,256],[]]; input_types = ["float","ScalarList"]; input_strides = [[8192,256,1],[]]; concrete_inputs = ["","[-1, 256]"]
    m = aten::linear; input_shapes = [[64,32,256],[64,256],[64]]; input_types = ["float","float","float"]; input_strides = [[8192,256,1],[256,1],[1]]; line = net.py:9 forward
    n = aten::linear; input_shapes = [[32,64,256],[64,256],[64]]; input_types = ["float","float","float"]; input_strides = [[16384,256,1],[256,1],[1]]; line = net.py:9 forward
    f = aten::addmm; input_shapes = [[64],[2048,256],[256,64],[],[]]; input_types = ["float","float","float","Scalar","Scalar"]; input_strides = [[1],[256,1],[1,256],[],[]]; line = net.py:9 forward
    l = aten::linear; input_shapes = [[64,32,128],[64,128],[64]]; input_types = ["float","float","float"]; input_strides = [[4096,128,1],[128,1],[1]]; line = net.py:9 forward
    L = aten::linear; input_shapes = [[64,32,128],[64,128],[64]]; input_types = ["float","float","float"]; input_strides = [[0,128,1],[128,1],[1]]; line = net.py:9 forward
    a = aten::mean; input_shapes = [[64,32,256],[]]; input_types = ["float",""]; input_strides = [[8192,256,1],[]]
    S = ProfilerStep#1
    T = ProfilerStep#2
"""  # noqa: E501 - what a letter stands for is on one line


def drawing(operators: str) -> str:
    row = operators.ljust(16)
    return f"column = 1 ms\nmark 1 | {'S' * 16}{'T' * 16}\ncpu 1 | {row}{row}\n" + OPERATORS


def found_lines(findings: list[Finding]) -> list[int | None]:
    return [finding.where.line for finding in findings]


def test_half_of_the_columns_repeat(judge: Judge[Finding]) -> None:
    """Of 8 ms in the product 65 / 128 remain, and the rest of 3 ms goes: 1 ms of each maker."""
    [finding] = judge(drawing("urcmmmmmmmm"))
    assert finding.title == "A product multiplies rows that are repeated 64 times"
    assert finding.count_per_step == 1
    assert finding.saving.estimate_ms == pytest.approx(2 + 8 * 63 / 128, abs=0.6)
    assert finding.fix.code is not None
    assert "weight[:, :k]" in finding.fix.code


def test_views_are_followed(judge: Judge[Finding]) -> None:
    assert found_lines(judge(drawing("urpptnnnnnnnn"))) == [9]
    assert found_lines(judge(drawing("urcvffffffff"))) == [9]


def test_strides_of_zero_repeat_rows(judge: Judge[Finding]) -> None:
    assert found_lines(judge(drawing("ueCmmmmmmmm"))) == [9]
    [finding] = judge(drawing("ueLLLLLLLL"))
    assert finding.fix.code is not None
    assert ".expand(" in finding.fix.code


def test_rows_that_are_all_repeated_are_multiplied_first(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("urllllllll"))
    assert finding.fix.text == "Multiply the rows once, and repeat the result."


def test_what_another_operator_takes_as_well_must_be_made(judge: Judge[Finding]) -> None:
    [alone] = judge(drawing("urrccmmmmmmmm"))
    [shared] = judge(drawing("urrccmmmmmmmma"))
    assert alone.saving.estimate_ms is not None
    assert shared.saving.estimate_ms is not None
    assert shared.saving.estimate_ms < alone.saving.estimate_ms - 3


def test_other_tensors_and_other_dimensions_are_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ucmmmmmmmm"))  # nothing was repeated
    assert not judge(drawing("urqcmmmmmmmm"))  # another operator took it
    assert not judge(drawing("urkcmmmmmmmm"))  # a view of it that is not followed
    assert not judge(drawing("urpcmmmmmmmm"))  # another tensor has the layout before the view
    assert not judge(drawing("ursmmmmmmmm"))  # put beneath each other
    assert not judge(drawing("uwcmmmmmmmm"))  # the columns repeat


PROGRAM = """
import torch
from torch import nn

torch.set_num_threads(1)
layer = nn.Linear(256 + 16, 64)
state, items = torch.randn(1, 16, 256), torch.randn(16, 64, 16)

def step(repeats=True):
    states = state.repeat(64, 1, 1) if repeats else state.mul(2).repeat(64, 1, 1).sin()
    both = torch.cat([states.transpose(0, 1), items], 2)
    hidden = layer(both)
    hidden.tanh().sum().backward()
"""


@pytest.mark.torch
@pytest.mark.parametrize("repeats", [True, False])
def test_a_recorded_program_that_scores_items_with_a_state(
    rule: Rule, tmp_path: Path, *, repeats: bool
) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "train.py"
    file.write_text(PROGRAM, encoding="utf-8")
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
    with selftime.profile(schedule=schedule, record_shapes=True, with_stack=True) as prof:
        for _ in range(5):
            step(repeats=repeats)
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    found = [outcome for outcome in rule(trace) if isinstance(outcome, Finding)]
    assert [finding.where.line for finding in found] == ([12] if repeats else [])
