"""Tests the rule `growing_cache` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace


def test_lengths_that_do_not_grow_by_the_new_piece_are_no_cache(judge: Judge[Finding]) -> None:
    drawing = """
        column = 20 us
        mark 1 | ddddddaaaaaabbbbbbcccccc
        cpu 1  | uuummmuuummmwwwmmmyyymmm
        d = ProfilerStep#1
        a = ProfilerStep#2
        b = ProfilerStep#3
        c = ProfilerStep#4
        u = aten::cat; input_shapes = [[[8,400],[8,1]],[]]
        w = aten::cat; input_shapes = [[[8,{second}],[8,1]],[]]
        y = aten::cat; input_shapes = [[[8,{third}],[8,1]],[]]
    """
    assert judge(drawing.format(second=401, third=402))
    assert not judge(drawing.format(second=500, third=640))


PROGRAM = """
import torch

cache = [torch.zeros(1, 8, 600, 64) for _ in range(4)]

def step():
    for layer in range(4):
        new = torch.zeros(1, 8, 1, 64)
        cache[layer] = torch.cat([cache[layer], new], dim=2)
"""


@pytest.mark.torch
@pytest.mark.timed
def test_a_recorded_program_that_appends_to_a_cache(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "appending.py"
    file.write_text(PROGRAM, encoding="utf-8")
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=0, warmup=1, active=5, repeat=1)
    with selftime.profile(schedule=schedule, record_shapes=True, with_stack=True) as prof:
        for _ in range(6):
            step()
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    [finding] = [o for o in rule(trace) if isinstance(o, Finding)]
    assert (finding.where.file, finding.where.line) == (str(file), 9)
    assert finding.count_per_step == pytest.approx(4)
