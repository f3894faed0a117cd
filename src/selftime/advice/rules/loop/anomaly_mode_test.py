"""Tests the rule `anomaly_mode` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace


def test_stacks_that_were_written_down_count_too(judge: Judge[Finding]) -> None:
    drawing = """
        column = 10 us
        mark 1   | ssssssssssssssssssssssssssssss
        python 1 | {frames}
        cpu 1    | mmmmmmmmmmmmmmmmmmmmeeeeeeeeee
        cpu 1    |                     bbbiiaaxxx
        s = ProfilerStep#1
        p = torch/fx/traceback.py(497): format_stack
        e = autograd::engine::evaluate_function: MmBackward0
        b = MmBackward0
        i = aten::isnan
        a = aten::any
        x = aten::is_nonzero
    """
    [checks] = judge(drawing.format(frames=""))
    [stacks] = judge(drawing.format(frames="  pppppppppp"))
    assert checks.saving.estimate_ms == pytest.approx(0.07)
    assert stacks.saving.estimate_ms == pytest.approx(0.17)


PROGRAM = """
import torch

model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(4)))
rows = torch.randn(8, 16)

def careless():
    with torch.autograd.detect_anomaly(check_nan=True):
        model(rows).sum().backward()

def careful():
    model(rows).sum().backward()
"""


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.timed
def test_programs(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "anomaly.py"
    file.write_text(PROGRAM, encoding="utf-8")
    program = runpy.run_path(str(file))
    found = {}
    for name in ("careless", "careful"):
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
    assert finding.where.file == str(file)
    assert finding.saving.speedup is not None
    assert finding.saving.speedup > 1.5
    assert not found["careful"]
