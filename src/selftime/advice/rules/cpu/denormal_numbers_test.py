"""Tests the rule `denormal_numbers` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule, Unknown
from selftime.testing import Judge, sketch
from selftime.trace import Trace

FACTS = '{"settings": {"denormals": true}}'
DRAWING = """
    column = 100 us
    facts = {facts}
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | {one}{two}{three}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::{name}; input_shapes = [[262144],[]]; input_types = ["float",""]; input_strides = [[1],[]]; line = e.py:5 f
    b = aten::{name}; input_shapes = [[{size}],[]]; input_types = ["float",""]; input_strides = [[1],[]]; line = e.py:6 f
    c = aten::mm
"""  # noqa: E501 - what a letter stands for is on one line


def drawing(*steps: str, facts: str = FACTS, name: str = "mul", size: int = 262144) -> str:
    one, two, three = (step.ljust(20) for step in steps)
    return DRAWING.format(facts=facts, one=one, two=two, three=three, name=name, size=size)


SLOW = "abbbbbbbbbbcccccc"


def test_the_line_and_what_its_equal_takes(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(SLOW, SLOW, SLOW))
    assert finding.where.line == 6
    assert finding.semantics == "numerics"
    assert finding.saving.estimate_ms == pytest.approx(0.9)
    assert finding.saving.upper_ms == pytest.approx(1.0)


def test_a_core_that_was_taken_away_once_is_no_denormal(judge: Judge[Finding]) -> None:
    assert not judge(drawing(SLOW, "abccccccccccccccc", SLOW))


def test_whether_numbers_were_denormal_must_be_known(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing(SLOW, SLOW, SLOW, facts="{}")))
    assert isinstance(outcome, Unknown)


def test_operators_of_another_size_are_no_equals(judge: Judge[Finding]) -> None:
    assert not judge(drawing(SLOW, SLOW, SLOW, size=2_000_000))


def test_functions_may_take_longer_than_others(judge: Judge[Finding]) -> None:
    assert not judge(drawing(SLOW, SLOW, SLOW, name="tanh"))


def test_without_an_equal_other_arithmetic_tells_the_pace(judge: Judge[Finding]) -> None:
    alone = drawing(SLOW, SLOW, SLOW).replace("b = aten::mul", "b = aten::sqrt")
    assert judge(alone)
    assert not judge(alone.replace("100 us", "10 us"))  # 0.4 ns for each number


PROGRAM = """
import torch

torch.set_num_threads(1)
loud = torch.rand(1 << 18)
faded = torch.full((1 << 18,), 1e-40)

def step():
    loud.sqrt()
    faded.sqrt()
"""


@pytest.mark.torch
@pytest.mark.parametrize("value", ["1e-40", "1e-30"])
@pytest.mark.timed
def test_program(rule: Rule, tmp_path: Path, value: str) -> None:
    torch = pytest.importorskip("torch")
    file = tmp_path / "envelope.py"
    source = PROGRAM.replace("1e-40", value)
    file.write_text(source, encoding="utf-8")
    code = compile(source, str(file), "exec")
    program: dict[str, object] = {}
    threads = torch.get_num_threads()
    exec(code, program)  # noqa: S102 - the test's own program
    step = program["step"]
    assert callable(step)
    schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
    with selftime.profile(schedule=schedule, with_stack=True, record_shapes=True) as prof:
        for _ in range(5):
            step()
            prof.step()
    torch.set_num_threads(threads)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    found = [o.where.line for o in rule(trace) if isinstance(o, Finding)]
    if trace.facts["settings"]["denormals"] is None:
        pytest.skip("the processor is not asked here")
    slow = trace.view("operators", by="line").filter(name="aten::sqrt")["cpu_time_total"].to_list()
    if value == "1e-40" and max(slow) < 8 * min(slow):
        pytest.skip("this processor is quick on such numbers")
    assert found == ([10] if value == "1e-40" else [])
