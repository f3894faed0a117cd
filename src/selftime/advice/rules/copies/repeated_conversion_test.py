"""Tests the rule `repeated_conversion` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch
from selftime.trace import Trace

DRAWING = """
    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | {one}{one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = {name}; line = net.py:7 forward; input_types = ["{dtype}"]; input_shapes = [{shape}]
    d = aten::to; line = net.py:7 forward; input_types = ["bool"]; input_shapes = [[9,640]]
    a = aten::mm
    e = autograd::engine::evaluate_function: MmBackward0; forward = a
"""


def drawing(
    one: str, *, name: str = "aten::to", dtype: str = "long int", shape: str = "[640,640]"
) -> str:
    return DRAWING.format(one=one.ljust(20), name=name, dtype=dtype, shape=shape)


def test_all_but_one_of_them_are_saved(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("ccaccaccaccae"))
    assert finding.count_per_step == 4
    assert finding.saving.upper_ms == pytest.approx(0.8)
    assert finding.saving.estimate_ms == pytest.approx(0.6)
    assert finding.where.line == 7


def test_each_kind_is_counted_by_itself(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ccaccaddaddae"))
    assert judge(drawing("ccaccaccaddae"))


def test_operators_of_another_thread_are_no_part_of_a_conversion(judge: Judge[Finding]) -> None:
    """An operator of no time, which begins when a conversion does, is none either."""
    other = """
    cpu 2  | {one}{one}{one}
    f = aten::mm
    g = autograd::engine::evaluate_function: MmBackward0; forward = f
    """.format(one="f  f  f  f  fg".ljust(20))
    [finding] = judge(drawing("ccaccaccaccae") + other)
    assert finding.count_per_step == 4


def test_layouts_count_as_well(judge: Judge[Finding]) -> None:
    assert judge(drawing("ccaccaccae", name="aten::contiguous", dtype="float"))
    assert not judge(drawing("ccaccaccae", name="aten::reshape", dtype="float"))


def test_small_tensors_are_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ccaccaccae", shape="[8,8]"))
    assert not judge(drawing("ccaccaccae", shape="[]"))


def test_without_gradients_nobody_can_tell(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ccaccacca"))


def test_without_gradients_the_cost_is_told(rule: Rule) -> None:
    [unknown] = rule(sketch(drawing("ccaccacca")))
    assert isinstance(unknown, Unknown)
    assert "net.py:7" in unknown.needs
    [checked] = rule(sketch(drawing("aaaaaaaca")))
    assert isinstance(checked, Checked)


PROGRAM = """
import torch

layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(6))
edges = (torch.rand(700, 700) < 0.1).long()
ready = edges.float()
rows = torch.randn(700, 16)

def converting():
    x = rows
    for layer in layers:
        x = layer(edges.float() @ x)
    x.sum().backward()

def plain():
    x = rows
    for layer in layers:
        x = layer(ready @ x)
    x.sum().backward()
"""


@pytest.mark.torch
@pytest.mark.timed
def test_programs(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "graph.py"
    file.write_text(PROGRAM, encoding="utf-8")
    program = runpy.run_path(str(file))
    found = {}
    for name in ("converting", "plain"):
        schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
        with selftime.profile(schedule=schedule, with_stack=True, record_shapes=True) as prof:
            for _ in range(5):
                program[name]()
                prof.step()
        prof.export_chrome_trace(str(tmp_path / f"{name}.json"))
        trace = selftime.load(tmp_path / f"{name}.json")
        assert isinstance(trace, Trace)
        found[name] = [o for o in rule(trace) if isinstance(o, Finding)]
    [finding] = found["converting"]
    assert (finding.where.file, finding.where.line) == (str(file), 12)
    assert finding.count_per_step == pytest.approx(6)
    assert not found["plain"]
