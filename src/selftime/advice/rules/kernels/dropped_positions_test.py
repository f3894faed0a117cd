"""Tests the rule `dropped_positions` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

OPERATORS = """
    a = aten::relu; input_shapes = [[2,512,64]]; input_types = ["float"]
    h = aten::linear; input_shapes = [[2,512,64],[1000,64]]; input_types = ["float","float"]; line = net.py:8 forward
    r = aten::relu; input_shapes = [[2,512,1000]]; input_types = ["float"]
    i = aten::relu_; input_shapes = [[2,512,1000]]; input_types = ["float"]
    l = aten::log_softmax; input_shapes = [[2,512,1000],[],[]]; input_types = ["float","Scalar",""]; concrete_inputs = ["","-1",""]
    L = aten::log_softmax; input_shapes = [[2,512,1000],[],[]]; input_types = ["float","Scalar",""]; concrete_inputs = ["","1",""]
    p = aten::transpose; input_shapes = [[2,512,1000],[],[]]; input_types = ["float","Scalar","Scalar"]; concrete_inputs = ["","1","2"]
    q = aten::slice; input_shapes = [[2,1000,512],[],[],[],[]]; input_types = ["float","Scalar","Scalar","Scalar","Scalar"]; concrete_inputs = ["","2","-4","9223372036854775807","1"]
    d = aten::slice; input_shapes = [[2,512,1000],[],[],[],[]]; input_types = ["float","Scalar","Scalar","Scalar","Scalar"]; concrete_inputs = ["","1","-4","9223372036854775807","1"]
    e = aten::slice; input_shapes = [[2,512,1000],[],[],[],[]]; input_types = ["float","Scalar","Scalar","Scalar","Scalar"]; concrete_inputs = ["","1","0","8","1"]
    z = aten::slice; input_shapes = [[2,512,1000],[],[],[],[]]; input_types = ["float","Scalar","Scalar","Scalar","Scalar"]; concrete_inputs = ["","1","1","9223372036854775807","1"]
    k = aten::slice; input_shapes = [[2,512,1000],[],[],[],[]]; input_types = ["float","Scalar","Scalar","Scalar","Scalar"]; concrete_inputs = ["","2","0","8","1"]
    x = aten::mse_loss; input_shapes = [[2,4,1000],[2,4,1000],[]]; input_types = ["float","float","Scalar"]
    X = aten::mse_loss; input_shapes = [[2,1000,4],[2,1000,4],[]]; input_types = ["float","float","Scalar"]
    y = aten::mse_loss; input_shapes = [[2,8,1000],[2,8,1000],[]]; input_types = ["float","float","Scalar"]
    Y = aten::mse_loss; input_shapes = [[2,511,1000],[2,511,1000],[]]; input_types = ["float","float","Scalar"]
    K = aten::mse_loss; input_shapes = [[2,512,8],[2,512,8],[]]; input_types = ["float","float","Scalar"]
    n = aten::detach; input_shapes = [[2,512,1000]]; input_types = ["float"]
    F = WarpLoss; input_shapes = [[2,512,1000]]; input_types = ["float"]
    c = Torch-Compiled Region: 0/0
    S = ProfilerStep#1
    T = ProfilerStep#2
"""  # noqa: E501 - what a letter stands for is on one line
GRADIENT = """
    G = autograd::engine::evaluate_function: AddmmBackward0; forward = {product}
"""


def drawing(operators: str, product: str = "h") -> str:
    row = f"{operators}GGGG".ljust(16)
    marks = f"mark 1 | {'S' * 16}{'T' * 16}\n"
    return (
        f"column = 1 ms\n{marks}cpu 1 | {row}{row}\n" + OPERATORS + GRADIENT.format(product=product)
    )


def test_the_products_of_both_passes_keep_the_share_of_the_used_positions(
    judge: Judge[Finding],
) -> None:
    [finding] = judge(drawing("ahhhhdx"))
    assert finding.title == "1024 positions are computed, of which 8 are used"
    assert finding.saving.estimate_ms == pytest.approx(8 * (1 - 8 / 1024), rel=0.15)
    assert (finding.where.file, finding.where.line) == ("net.py", 8)


def test_what_stands_between_the_product_and_the_slice_is_followed(judge: Judge[Finding]) -> None:
    for between in ("r", "i", "l", "rl"):
        [finding] = judge(drawing(f"ahhh{between}dx"))
        assert "8 are used" in finding.title, between
    [finding] = judge(drawing("ahhhpqX"))
    assert "8 are used" in finding.title


def test_all_positions_are_used_along_a_softmax_of_positions(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ahhhLdx"))


def test_two_slices_need_what_lies_between_them(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ahhhddxey"))
    [finding] = judge(drawing("ahhhey"))
    assert "16 are used" in finding.title


def test_other_uses_of_the_whole_result_are_respected(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ahhhdxn"))  # a metric may read it, or the host
    assert not judge(drawing("ahhhFdx"))  # a function in Python
    assert not judge(drawing("ahhhdxc"))  # compiled code
    assert not judge(drawing("nahhhdx"))  # the next step takes it


def test_few_dropped_positions_and_columns_are_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ahhhzY"))
    assert not judge(drawing("ahhhkK"))


def test_a_slice_that_nothing_is_seen_to_take_is_used_as_a_whole(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("ahhhd"))
    assert "8 are used" in finding.title


def test_a_product_without_gradient_is_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ahhhdx", product="a"))


CONVOLUTIONS = """
    column = 1 ms
    mark 1 | SSSSSSSSSSSSSSSSTTTTTTTTTTTTTTTT
    cpu 1  | acccDDDrdxGGHH  acccDDDrdxGGG
    a = aten::relu; input_shapes = [[2,8,100]]; input_types = ["float"]
    c = aten::conv1d; input_shapes = [[2,8,100],[16,8,1],[16],[],[],[],[]]; input_types = ["float","float","float","","","",""]; concrete_inputs = ["","","","[1]","[0]","[1]","1"]; line = net.py:7 forward
    D = aten::conv1d; input_shapes = [[2,16,100],[16,16,3],[16],[],[],[],[]]; input_types = ["float","float","float","","","",""]; concrete_inputs = ["","","","[1]","[4]","[2]","1"]; line = net.py:8 forward
    r = aten::relu; input_shapes = [[2,16,104]]; input_types = ["float"]
    d = aten::slice; input_shapes = [[2,16,104],[],[],[],[]]; input_types = ["float","Scalar","Scalar","Scalar","Scalar"]; concrete_inputs = ["","2","50","52","1"]
    x = aten::mse_loss; input_shapes = [[2,16,2],[2,16,2],[]]; input_types = ["float","float","Scalar"]
    G = autograd::engine::evaluate_function: ConvolutionBackward0; forward = c
    H = autograd::engine::evaluate_function: ConvolutionBackward0; forward = D
    S = ProfilerStep#1
    T = ProfilerStep#2
"""  # noqa: E501 - what a letter stands for is on one line


def test_a_convolution_needs_what_its_kernel_reaches(judge: Judge[Finding]) -> None:
    """Positions 50 and 51 of the result need 46 to 51 of the input."""
    first, second = sorted(judge(CONVOLUTIONS), key=lambda finding: finding.where.line or 0)
    assert first.title == "200 positions are computed, of which 12 are used"
    assert second.title == "208 positions are computed, of which 4 are used"
    assert "hidden[:, -n:]" in (first.fix.code or "")


def test_padding_that_is_cut_off_again_is_not_to_be_added(judge: Judge[Finding]) -> None:
    """A kernel of 3 with dilation 20 and 40 positions of padding at both ends."""
    text = CONVOLUTIONS.replace('"[4]","[2]"', '"[40]","[20]"').replace("104", "140")
    [finding] = judge(text.replace('"50","52"', '"0","100"').replace("[2,16,2]", "[2,16,100]"))
    assert finding.title == "280 positions are computed, of which 200 are used"
    assert "F.pad(x, (p, 0))" in (finding.fix.code or "")


PROGRAM = """
import torch
from torch import nn

torch.set_num_threads(1)
body, head = nn.Linear(64, 128), nn.Linear(128, 1000)
inputs, targets = torch.randn(4, 128, 64), torch.randint(1000, (4,))

def step(keeps_all=False):
    hidden = body(inputs).relu()
    logits = head(hidden)
    loss = nn.functional.cross_entropy(logits[:, -1], targets)
    if keeps_all:
        loss = loss + logits.square().mean()
    loss.backward()
"""


@pytest.mark.torch
@pytest.mark.parametrize("keeps_all", [False, True])
def test_a_recorded_program_whose_loss_sees_the_last_position(
    rule: Rule, tmp_path: Path, *, keeps_all: bool
) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "train.py"
    file.write_text(PROGRAM, encoding="utf-8")
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
    with selftime.profile(schedule=schedule, record_shapes=True, with_stack=True) as prof:
        for _ in range(5):
            step(keeps_all=keeps_all)
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    lines = {outcome.where.line for outcome in rule(trace) if isinstance(outcome, Finding)}
    assert not lines if keeps_all else 11 in lines
