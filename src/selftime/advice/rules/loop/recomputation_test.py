"""Tests the rule `recomputation` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
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
    assert 1 < finding.saving.speedup < 2
    assert not found["plain"]
