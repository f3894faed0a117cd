"""Edges of `unused_positions` that its page does not draw."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.base import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

DRAWING = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | ahhhhhhdf ahhhhhhdf
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = {before}
    h = aten::linear; input_shapes = [[2,512,64],[1000,64]]; line = net.py:8 forward
    d = {after}
    f = aten::argmax; input_shapes = [[2,1000],[],[]]
"""
LAST = 'aten::select; input_shapes = [[2,512,1000],[],[]]; concrete_inputs = ["","1","-1"]'
RELU = "aten::relu; input_shapes = [[2,512,64]]"


def part(begin: int, dim: int = 1) -> str:
    told = f'["","{dim}","{begin}","9223372036854775807","1"]'
    return f"aten::slice; input_shapes = [[2,512,1000],[],[],[],[]]; concrete_inputs = {told}"


def drawing(after: str = LAST, before: str = RELU) -> str:
    return DRAWING.format(after=after, before=before)


def test_what_is_left_is_a_row_of_each_sequence(judge: Judge[Finding]) -> None:
    """4 of 1024 rows take 4 ms / 1024 * 6 of 6 ms: one that is read is no less than 4."""
    [finding] = judge(drawing())
    assert "1024 rows, of which 2 are used" in finding.title
    assert finding.saving.estimate_ms == pytest.approx(6, rel=0.02)
    assert (finding.where.file, finding.where.line) == ("net.py", 8)


def test_half_of_the_positions_save_half(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(part(256)))
    assert finding.saving.estimate_ms == pytest.approx(3, rel=0.02)
    assert not judge(drawing(part(1))), "below the gate"


def test_a_part_of_the_columns_needs_all_rows(judge: Judge[Finding]) -> None:
    assert not judge(drawing(part(10, dim=2)))
    assert not judge(drawing(part(10, dim=-1)))


def test_who_uses_it_must_be_seen(judge: Judge[Finding]) -> None:
    assert not judge(drawing("aten::relu; input_shapes = [[7,7]]"))
    assert not judge(drawing("aten::to; input_shapes = [[2,512,1000]]"))


def test_what_cannot_be_read_uses_all(judge: Judge[Finding]) -> None:
    assert not judge(drawing(LAST.replace('"-1"', '"oops"')))
    assert not judge(drawing(LAST.replace('"1"', '"9"')))


def test_gradients_use_all(judge: Judge[Finding]) -> None:
    assert not judge(drawing(before="autograd::engine::evaluate_function: AddmmBackward0"))


PROGRAM = """
import torch
from torch import nn

torch.set_num_threads(1)
body, head = nn.Linear(128, 128), nn.Linear(128, 4000)
prompt = torch.randn(2, 128, 128)

@torch.inference_mode()
def step():
    hidden = body(prompt).relu()
    logits = head(hidden)
    return logits[:, -1].argmax(-1)
"""


@pytest.mark.torch
@pytest.mark.timed
def test_a_program_that_throws_logits_away(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "prefill.py"
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
    assert (finding.where.file, finding.where.line) == (str(file), 12)
