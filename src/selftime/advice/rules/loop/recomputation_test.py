"""Tests the rule `recomputation` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import sketch
from selftime.trace import Trace

PROGRAM = """
import torch
from torch.utils.checkpoint import checkpoint

model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(4)))
rows = torch.randn(64, 128)

def careful():
    checkpoint(model, rows, use_reentrant=False).sum().backward()

def plain():
    model(rows).sum().backward()
"""


DERIVED_TWICE = """
    column = 1 ms
    mark 1 | ssssssssssssssssssssttttttttttttttttttttt
    cpu 1  | mmmmmm bbbbb ccccc  mmmmmm bbbbb ccccc
    cpu 1  |        nnn   nnn           nnn   nnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    m = aten::linear; sequence = 3; forward_thread = 0; line = net.py:6 forward
    n = aten::mm; sequence = 4; forward_thread = 0; line = net.py:6 forward
    b = autograd::engine::evaluate_function: AddmmBackward0; sequence = 3; forward_thread = 1
    c = autograd::engine::evaluate_function: TanhBackward0; sequence = 2; forward_thread = 1
"""


@pytest.mark.parametrize("frames", ["", "python 1 | ffffff\nf = net.py(5): forward"])
def test_a_backward_pass_that_is_derived_again_recomputes_nothing(rule: Rule, frames: str) -> None:
    [outcome] = rule(sketch(DERIVED_TWICE + frames))
    assert isinstance(outcome, Checked)
    checkpointed = DERIVED_TWICE.replace("AddmmBackward0", "CheckpointFunctionBackward")
    assert isinstance(rule(sketch(checkpointed + frames))[0], Finding)


PENALTY = """
    column = 1 ms
    mark 1 | ssssssssssssssssssssttttttttttttttttttttt
    cpu 1  | mmm bbbb cccc dddd  mmm bbbb cccc dddd
    cpu 1  |     nn   oo   oo        nn   oo   oo
    s = ProfilerStep#1
    t = ProfilerStep#2
    m = aten::linear; sequence = 3; forward_thread = 0; line = net.py:6 forward
    n = aten::mm; sequence = 4; forward_thread = 0; line = net.py:6 forward
    o = aten::mm
    b = autograd::engine::evaluate_function: AddmmBackward0; sequence = 3; forward_thread = 1
    c = autograd::engine::evaluate_function: Mm; sequence = 4; forward_thread = 1; forward = n
    d = autograd::engine::evaluate_function: TanhBackward0; sequence = 2; forward_thread = 1
"""


def test_a_penalty_on_gradients_recomputes_nothing(rule: Rule) -> None:
    [outcome] = rule(sketch(PENALTY))
    assert isinstance(outcome, Checked)
    without_gradient = PENALTY.replace("; forward = n", "")
    assert isinstance(rule(sketch(without_gradient))[0], Finding)


@pytest.mark.torch
@pytest.mark.timed
def test_programs(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "checkpoints.py"
    file.write_text(PROGRAM, encoding="utf-8")
    program = runpy.run_path(str(file))
    found = {}
    for name in ("careful", "plain"):
        schedule = selftime.schedule(wait=0, warmup=1, active=3, repeat=1)
        with selftime.profile(schedule=schedule, with_stack=True) as prof:
            for _ in range(4):
                program[name]()
                prof.step()
        prof.export_chrome_trace(str(tmp_path / f"{name}.json"))
        trace = selftime.load(tmp_path / f"{name}.json")
        assert isinstance(trace, Trace)
        found[name] = [o for o in rule(trace) if isinstance(o, Finding)]
    [finding] = found["careful"]
    assert finding.confidence == "low"
    assert finding.saving.speedup is not None
    assert finding.saving.speedup > 1
    assert not found["plain"]
