"""Tests the rule `evaluation_with_gradients` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace


def test_one_forward_step_may_be_cut(judge: Judge[Finding]) -> None:
    assert not judge("""
        mark 1 | ssssss
        cpu 1  | aabbcc
        s = ProfilerStep#1
        a = aten::linear; sequence = 1
        b = aten::relu; sequence = 2
        c = aten::linear; sequence = 3
    """)


def test_a_graph_that_a_later_step_uses_is_used(judge: Judge[Finding]) -> None:
    drawing = """
        mark 1 | sssssstttttt
        cpu 1  | aabbccddeeff
        cpu 1  |             gghh
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::linear; sequence = 1
        b = aten::relu; sequence = 2
        c = aten::linear; sequence = 3
        d = aten::linear; sequence = 4
        e = aten::relu; sequence = 5
        f = aten::linear; sequence = 6
        g = LinearBackward0{last}
        h = LinearBackward0{first}
    """
    assert judge(drawing.format(first="", last=""))
    assert not judge(drawing.format(first="; forward = a", last="; forward = c"))


def test_arithmetic_that_is_no_network_is_left_alone(judge: Judge[Finding]) -> None:
    assert not judge("""
        mark 1 | ssssssuuuuuu
        cpu 1  | aabbccddeeff
        s = ProfilerStep#1
        u = ProfilerStep#2
        a = aten::add; sequence = 1
        b = aten::mul; sequence = 2
        c = aten::sub; sequence = 3
        d = aten::add; sequence = 4
        e = aten::mul; sequence = 5
        f = aten::sub; sequence = 6
    """)


def test_what_a_compiler_traces_is_no_forward_pass(judge: Judge[Finding]) -> None:
    drawing = """
        mark 1 | ssssssstttttttuuuuuuu
        cpu 1  | kkkkkkkllllllliiiiiii
        cpu 1  | aabbccdddeeffggghhjjj
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        k = {name}
        l = {name}
        i = {name}
        a = aten::linear; sequence = 1
        b = aten::relu; sequence = 2
        c = aten::linear; sequence = 3
        d = aten::linear; sequence = 4
        e = aten::relu; sequence = 5
        f = aten::linear; sequence = 6
        g = aten::linear; sequence = 7
        h = aten::relu; sequence = 8
        j = aten::linear; sequence = 9
    """
    assert judge(drawing.format(name="aten::checkpoint"))
    assert not judge(drawing.format(name="_compile.compile_inner (dynamo_timed)"))


PROGRAM = """
import torch
import torch.utils.checkpoint

model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
rows = torch.randn(8, 16)

def careless():
    model(rows).argmax(1)

def careful():
    with torch.inference_mode():
        model(rows).argmax(1)

def training():
    model(rows).sum().backward()

def metric():
    model(rows).sum().backward()
    model(rows).argmax(1)

frozen = torch.nn.Linear(16, 16).requires_grad_(False)

def recomputing():
    parts = torch.utils.checkpoint.checkpoint(model, rows.requires_grad_(), use_reentrant=True)
    parts.sum().backward()

def tuning():
    model(frozen(rows)).sum().backward()
"""


@pytest.mark.torch
def test_programs(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "evaluate.py"
    file.write_text(PROGRAM, encoding="utf-8")
    program = runpy.run_path(str(file))
    found = {}
    for name in ("careless", "careful", "training", "metric", "tuning", "recomputing"):
        schedule = selftime.schedule(wait=0, warmup=1, active=3, repeat=1)
        with selftime.profile(schedule=schedule, with_stack=True) as prof:
            for _ in range(4):
                program[name]()
                prof.step()
        prof.export_chrome_trace(str(tmp_path / f"{name}.json"))
        trace = selftime.load(tmp_path / f"{name}.json")
        assert isinstance(trace, Trace)
        found[name] = [o for o in rule(trace) if isinstance(o, Finding)]
    [finding] = found["careless"]
    assert (finding.where.file, finding.where.line) == (str(file), 9)
    assert finding.count_per_step == pytest.approx(5)  # each layer transposes and multiplies
    assert finding.saving.estimate_ms is None
    assert not found["careful"]
    assert not found["training"]
    assert not found["tuning"]
    assert not found["recomputing"]
    [finding] = found["metric"]
    assert (finding.where.file, finding.where.line) == (str(file), 20)
    assert finding.count_per_step == pytest.approx(3)
