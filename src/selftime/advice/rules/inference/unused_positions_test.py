"""Tests the rule `unused_positions` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
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


def slice_operator(begin: int, dim: int = 1) -> str:
    told = f'["","{dim}","{begin}","9223372036854775807","1"]'
    return f"aten::slice; input_shapes = [[2,512,1000],[],[],[],[]]; concrete_inputs = {told}"


def drawing(consumer: str = LAST, first_operator: str = RELU) -> str:
    return DRAWING.format(after=consumer, before=first_operator)


def test_the_estimate_keeps_one_row_of_each_sequence(judge: Judge[Finding]) -> None:
    """The estimate keeps 4 of 1024 rows: on a CPU, products of 1 row and of 4 take as long."""
    [finding] = judge(drawing())
    assert "1024 rows, of which 2 are used" in finding.title
    assert finding.saving.estimate_ms == pytest.approx(6, rel=0.02)
    assert (finding.where.file, finding.where.line) == ("net.py", 8)


def test_the_weights_are_read_for_one_row_as_well(judge: Judge[Finding]) -> None:
    run = """
    run | 2 inference 10 ms
    run | 1 cpu thread: float32 100 GFLOP/s, copies 1 GB/s
"""
    [finding] = judge(drawing() + run)
    assert finding.saving.estimate_ms == pytest.approx(6 - 64 * 1000 * 4 / 1e6, rel=0.001)


def test_half_of_the_positions_save_half(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(slice_operator(256)))
    assert finding.saving.estimate_ms == pytest.approx(3, rel=0.02)
    assert not judge(drawing(slice_operator(1))), "not significant"


def test_a_part_of_the_columns_needs_all_rows(judge: Judge[Finding]) -> None:
    assert not judge(drawing(slice_operator(10, dim=2)))
    assert not judge(drawing(slice_operator(10, dim=-1)))


def test_a_result_without_known_consumers_is_not_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing("aten::relu; input_shapes = [[7,7]]"))
    assert not judge(drawing("aten::to; input_shapes = [[2,512,1000]]"))


def test_unreadable_arguments_count_as_use_of_all_positions(judge: Judge[Finding]) -> None:
    assert not judge(drawing(LAST.replace('"-1"', '"oops"')))
    assert not judge(drawing(LAST.replace('"1"', '"9"')))


def test_programs_with_a_backward_pass_are_not_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing(first_operator="autograd::engine::evaluate_function: AddmmBackward0"))


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
def test_a_recorded_program_that_uses_only_the_last_logits(rule: Rule, tmp_path: Path) -> None:
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
