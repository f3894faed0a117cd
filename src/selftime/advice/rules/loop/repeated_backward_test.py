"""Tests the rule `repeated_backward` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

DRAWING = """
    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | {one}{one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    m = aten::mm; sequence = 5; forward_thread = 0
    b = autograd::engine::evaluate_function: MmBackward0; sequence = 5; forward_thread = 1
    c = autograd::engine::evaluate_function: MmBackward0; sequence = 6; forward_thread = 1
    d = autograd::engine::evaluate_function: TBackward0; sequence = 5; forward_thread = 1
"""


def test_only_what_is_evaluated_again_is_saved(judge: Judge[Finding]) -> None:
    [finding] = judge(DRAWING.format(one="mmmbbbccbbd "))
    assert finding.count_per_step == 1
    assert finding.saving.estimate_ms == pytest.approx(2)
    assert not judge(DRAWING.format(one="mmmbbbccd   "))


PROGRAM = """
import torch

# Wide enough to take longer than recording it does.
trunk = torch.nn.Sequential(*(torch.nn.Linear(384, 384) for _ in range(8)))
heads = torch.nn.ModuleList(torch.nn.Linear(384, 1) for _ in range(2))
rows = torch.randn(128, 384)

def losses():
    hidden = trunk(rows)
    return [head(hidden).square().mean() for head in heads]

def twice():
    first, second = losses()
    first.backward(retain_graph=True)
    second.backward()

def once():
    sum(losses()).backward()

def penalty():
    x = rows.clone().requires_grad_()
    out = heads[0](trunk(x)).tanh().sum()
    [grad] = torch.autograd.grad(out, x, create_graph=True)
    (out + grad.square().sum()).backward()
"""


@pytest.mark.torch
@pytest.mark.timed
def test_programs(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "heads.py"
    file.write_text(PROGRAM, encoding="utf-8")
    program = runpy.run_path(str(file))
    found = {}
    for name in ("twice", "once", "penalty"):
        schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
        with selftime.profile(schedule=schedule, with_stack=True) as prof:
            for _ in range(5):
                program[name]()
                prof.step()
        prof.export_chrome_trace(str(tmp_path / f"{name}.json"))
        trace = selftime.load(tmp_path / f"{name}.json")
        assert isinstance(trace, Trace)
        found[name] = [o for o in rule(trace) if isinstance(o, Finding)]
    [finding] = found["twice"]
    assert finding.where.function == "twice"
    assert finding.saving.speedup is not None
    assert 1.2 < finding.saving.speedup < 2
    assert not found["once"]
    assert not found["penalty"]
