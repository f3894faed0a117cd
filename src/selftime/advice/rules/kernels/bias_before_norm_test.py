"""Tests the rule `bias_before_norm` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch
from selftime.trace import Trace

DRAWING = """
    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | {layer}{layer}{layer}
    cpu 1  |  pp        pp        pp
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = {name}; input_shapes = {shapes}; line = net.py:7 forward
    p = aten::add_; input_shapes = [[8,64,32],[1,64,1],[]]
    v = aten::view; input_shapes = [[8,64,32],[]]
    o = aten::add_; input_shapes = [[],[],[]]
    n = aten::batch_norm; input_shapes = {norm}; concrete_inputs = {flags}
"""

TRAINING = '["","","","","","True"]'


def drawing(
    layer: str = "cccvonnnnn",
    name: str = "aten::conv1d",
    shapes: str = "[[8,3,32],[64,3,3],[64]]",
    norm: str = "[[8,64,32],[64]]",
    flags: str = TRAINING,
) -> str:
    return DRAWING.format(layer=layer, name=name, shapes=shapes, norm=norm, flags=flags)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("aten::conv1d", "[[8,3,32],[64,3,3],[64]]"),
        ("aten::linear", "[[8,3],[64,3],[64]]"),
        ("aten::addmm", "[[64],[8,3],[3,64]]"),
    ],
)
def test_any_layer_may_have_a_bias(judge: Judge[Finding], name: str, shapes: str) -> None:
    [finding] = judge(drawing(name=name, shapes=shapes))
    assert finding.where.line == 7
    assert finding.saving.estimate_ms == pytest.approx(2.0)


def test_a_norm_of_what_was_learnt_is_another(judge: Judge[Finding]) -> None:
    assert not judge(drawing(flags='["","","","","","False"]'))


def test_the_norm_must_be_of_the_same_channels(judge: Judge[Finding]) -> None:
    assert not judge(drawing(norm="[[8,32,64],[32]]"))


def test_words_that_are_no_flags(rule: Rule) -> None:
    assert rule(sketch(drawing(flags="oops", shapes="oops")))


@pytest.mark.torch
def test_on_a_cpu_it_costs_nothing(rule: Rule, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU())
    images = torch.randn(8, 3, 32, 32)
    path = tmp_path / "trace.json"
    plan = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
    with selftime.profile(schedule=plan, record_shapes=True) as prof:
        for _ in range(5):
            model(images).square().mean().backward()
            prof.step()
    prof.export_chrome_trace(str(path))
    trace = selftime.load(path)
    assert isinstance(trace, Trace)
    [outcome] = rule(trace)
    assert isinstance(outcome, Checked)
    assert "takes" in outcome.reason
