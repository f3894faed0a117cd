"""Tests the rule `training_mode_in_evaluation` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

DRAWING = """
    column = 10 us
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | {one}{two}{three}
    cpu 1  |     n           n           n
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    l = aten::linear
    d = {layer}; line = net.py:9 forward
    n = {draw}; line = net.py:9 forward
    e = autograd::engine::evaluate_function: AddmmBackward0
"""
TRAINS = "llllddddllee"
RUNS = "llllddddllll"


def drawing(*steps: str, layer: str = "aten::dropout", draw: str = "aten::bernoulli_") -> str:
    one, two, three = steps
    return DRAWING.format(one=one, two=two, three=three, layer=layer, draw=draw)


def test_steps_of_evaluation_among_those_of_training(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(TRAINS, RUNS, RUNS))
    assert finding.count_per_step == 1
    assert finding.saving.estimate_ms is None
    assert finding.where.line == 9
    assert not judge(drawing(RUNS, TRAINS, RUNS))  # one in a row may be cut


def test_random_numbers_elsewhere_are_no_dropout(judge: Judge[Finding]) -> None:
    assert not judge(drawing(RUNS, RUNS, RUNS, layer="aten::bernoulli"))
    assert judge(drawing(RUNS, RUNS, RUNS, layer="aten::linear", draw="aten::native_dropout"))


PROGRAM = """
import torch

model = torch.nn.Sequential(
    torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(), torch.nn.Linear(8, 8)
)
rows = torch.randn(16, 8)

def forgotten():
    model.train()
    with torch.no_grad():
        model(rows)

def meant():
    model.eval()
    with torch.no_grad():
        model(rows)

def norms_of_input():
    layers = torch.nn.Sequential(
        torch.nn.InstanceNorm1d(8), torch.nn.BatchNorm1d(8, track_running_stats=False)
    )
    with torch.no_grad():
        layers.eval()(rows.mT[None])

def training():
    model.train()
    model(rows).sum().backward()
"""


@pytest.mark.torch
@pytest.mark.parametrize("layers", [slice(1, 2), slice(2, 3)])
@pytest.mark.timed
def test_programs(rule: Rule, tmp_path: Path, layers: slice) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "evaluate.py"
    file.write_text(f"{PROGRAM}\nmodel = model[{layers.start}:{layers.stop}]\n", encoding="utf-8")
    if layers.start == 2:
        file.write_text(f"{file.read_text(encoding='utf-8')}rows.requires_grad_()\n")
    program = runpy.run_path(str(file))
    found = {}
    for name in ("forgotten", "meant", "norms_of_input", "training"):
        schedule = selftime.schedule(wait=0, warmup=1, active=3, repeat=1)
        with selftime.profile(schedule=schedule, record_shapes=True) as prof:
            for _ in range(4):
                program[name]()
                prof.step()
        prof.export_chrome_trace(str(tmp_path / f"{name}.json"))
        trace = selftime.load(tmp_path / f"{name}.json")
        assert isinstance(trace, Trace)
        found[name] = [o for o in rule(trace) if isinstance(o, Finding)]
    assert len(found["forgotten"]) == 1
    assert not found["meant"]
    assert not found["norms_of_input"]
    assert not found["training"]
