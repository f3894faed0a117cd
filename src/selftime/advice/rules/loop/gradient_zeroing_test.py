"""Tests the rule `gradient_zeroing` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

DRAWING = """
    column = 20 us
    mark 1 | sssssssssssssssssssstttttttttttttttttttt
    mark 1 | zzzz                zzzz
    cpu 1  | a    mmm            a    mmm
    call 1 | a    m              a    m
    gpu 7  |  {a}    mmmmmmm      {a}    mmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    z = {region}
    a = {operator}; line = train.py:5 main
"""


def drawing(operator: str, region: str = "Optimizer.zero_grad#AdamW.zero_grad") -> str:
    return DRAWING.format(a="aaaa", operator=operator, region=region)


def test_zeros_of_all_tensors_at_once_are_zeros_too(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("aten::_foreach_zero_"))
    assert (finding.where.file, finding.where.line) == ("train.py", 5)


def test_zeros_elsewhere_are_no_gradients(judge: Judge[Finding]) -> None:
    assert not judge(drawing("aten::zero_", region="reset"))


@pytest.mark.torch
def test_on_a_cpu_it_is_told_and_not_promised(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "zeros.py"
    file.write_text(
        """
import torch

model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.randn(8, 256)

def step():
    optimizer.zero_grad(set_to_none=False)
    model(rows).sum().backward()
    optimizer.step()
""",
        encoding="utf-8",
    )
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=0, warmup=1, active=3, repeat=1)
    with selftime.profile(schedule=schedule) as prof:
        for _ in range(4):
            step()
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    [outcome] = rule(trace)
    assert isinstance(outcome, Checked)
    assert "on a CPU" in outcome.reason
    assert outcome.upper_ms is not None
    assert outcome.upper_ms > 0
